"""What a hollow kubelet does with a pod, as a table: stages in their order, each with the seconds it lasts.

    stage      lasts               phase      ready   what people see
    PULLING    pull-seconds        Pending    no      ContainerCreating    (for ever with pull-fails: ImagePullBackOff)
    STARTING   start-seconds       Pending    no      ContainerCreating
    WARMING    ready-seconds       Running    no      0/1 Running          (for ever with never-ready)
    READY      unready-after-…     Running    yes     1/1 Running          (for ever unless that is set)
    FAILING    for ever            Running    no      readiness fails
    EXITED     for ever            Succeeded or Failed, run-seconds after it started; not where it would be restarted

Of the guest in a virt-launcher pod the hollow virt-handlers of testbed/kubevirt read:

    boot-seconds         from virt-launcher being ready to the guest being Running
    stop-seconds         how long the guest takes to shut down when its pod is deleted
    migration-seconds    how long a live migration copies
    migration-fails      it fails after that time, on the source

The numbers are the defaults below, overridden by annotations `sim.novasphere.dev/<name>` of the node, then of the pod.
They may be changed at any time, by kubectl too: the stage follows from the pod's age and the table alone, so
`never-ready` set on a running pod takes its readiness away, and removing it gives it back. Annotations with their
former prefix, `testbed.wukong/`, are read, too; where one object has both, the new one counts. Nothing here knows of
time or HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from math import inf

import msgspec

PREFIX, FORMER_PREFIX = "sim.novasphere.dev/", "testbed.wukong/"
SILENT = f"{PREFIX}silent"  # on a Node: "true" and its kubelet is not heard of until it is removed
HOLLOW = f"{PREFIX}hollow"  # label of the Nodes that we run


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """One row of numbers; the fields are the names of the annotations."""

    pull_seconds: float = 0.1
    start_seconds: float = 0.05
    ready_seconds: float = 0.1
    never_ready: bool = False
    unready_after_seconds: float | None = None
    stop_seconds: float = 0.1
    pull_fails: bool = False
    run_seconds: float | None = None
    exit_code: int = 0
    boot_seconds: float = 0.05
    migration_seconds: float = 0.1
    migration_fails: bool = False


NAMES = tuple(field.encode_name for field in msgspec.structs.fields(Behaviour))


class Stage(msgspec.Struct, frozen=True):
    """What the pod's status says while a stage lasts."""

    phase: str
    is_ready: bool = False
    waiting: str = ""
    exit_code: int | None = None


PULLING = Stage("Pending", waiting="ContainerCreating")
PULL_FAILED = Stage("Pending", waiting="ImagePullBackOff")
STARTING = Stage("Pending", waiting="ContainerCreating")
WARMING = Stage("Running")
READY = Stage("Running", is_ready=True)
FAILING = Stage("Running")


class BadAnnotationError(ValueError):
    """An annotation that nobody can follow; the pod's status will say so."""


def timeline(behaviour: Behaviour, *, may_exit: bool) -> list[tuple[Stage, float]]:
    """The stages and how long each lasts; the last one lasts for ever."""
    if behaviour.pull_fails:
        return [(PULLING, behaviour.pull_seconds), (PULL_FAILED, inf)]
    rows = [(PULLING, behaviour.pull_seconds), (STARTING, behaviour.start_seconds)]
    rows.append((WARMING, inf if behaviour.never_ready else behaviour.ready_seconds))
    rows.append((READY, inf if behaviour.unready_after_seconds is None else behaviour.unready_after_seconds))
    rows.append((FAILING, inf))
    if behaviour.run_seconds is None or not may_exit:
        return rows
    return cut(
        rows, behaviour.pull_seconds + behaviour.start_seconds + behaviour.run_seconds, exited(behaviour.exit_code)
    )


def cut(rows: list[tuple[Stage, float]], age: float, last: Stage) -> list[tuple[Stage, float]]:
    """The same rows until `age`, then `last` for ever."""
    kept, left = [], age
    for stage, seconds in rows:
        if left <= 0:
            break
        kept.append((stage, min(seconds, left)))
        left -= seconds
    return [*kept, (last, inf)]


def exited(code: int) -> Stage:
    return Stage("Failed" if code else "Succeeded", exit_code=code)


def stage_at(rows: list[tuple[Stage, float]], age: float) -> tuple[Stage, float]:
    """The stage of a pod of this age, and the seconds until the next."""
    for stage, seconds in rows:
        if age < seconds:
            return stage, seconds - age
        age -= seconds
    return rows[-1][0], inf


def may_exit(restart_policy: str, code: int) -> bool:
    """Whether a container that ends stays ended. Restarts are not played: such a container runs on."""
    return restart_policy == "Never" or (restart_policy == "OnFailure" and code == 0)


def overridden(base: Behaviour, *annotations: Mapping[str, str] | None) -> Behaviour:
    """The table with the annotations' numbers in it, later ones last. Raises BadAnnotationError."""
    for metadata in annotations:
        settings = settings_of(metadata)
        settings.pop("silent", None)
        if settings:
            values = {name: value_of(name, key, text) for name, (key, text) in settings.items()}
            base = msgspec.convert({**msgspec.to_builtins(base), **values}, Behaviour)
    return base


def settings_of(metadata: Mapping[str, str] | None) -> dict[str, tuple[str, str]]:
    """Of annotations or labels those with our prefix: name → key and text. Of two prefixes the new one counts."""
    settings: dict[str, tuple[str, str]] = {}
    for prefix in (FORMER_PREFIX, PREFIX):
        for key, text in (metadata or {}).items():
            if key.startswith(prefix):
                settings[key.removeprefix(prefix)] = key, text
    return settings


def is_set(name: str, metadata: Mapping[str, str] | None) -> bool:
    """Whether the annotation or label of this name is "true"."""
    return settings_of(metadata).get(name, ("", ""))[1] == "true"


def value_of(name: str, key: str, text: str) -> object:
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        raise BadAnnotationError(f"{key} is unknown." + (f" Did you mean {PREFIX}{close[0]}?" if close else ""))
    kind = next(field.type for field in msgspec.structs.fields(Behaviour) if field.encode_name == name)
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        expected = (
            '"true" or "false"'
            if kind is bool
            else 'an integer such as "1"'
            if kind is int
            else 'seconds such as "2.5"'
        )
        raise BadAnnotationError(f'{key}: expected {expected}, got "{text}"') from None
