"""What a kubelet does with a pod, as a table: stages in order, each with the seconds it lasts.

    stage      lasts               phase      ready   what people see
    PULLING    pull-seconds        Pending    no      ContainerCreating    (for ever with pull-fails: ImagePullBackOff)
    STARTING   start-seconds       Pending    no      ContainerCreating
    WARMING    ready-seconds       Running    no      0/1 Running          (for ever with never-ready)
    READY      unready-after-…     Running    yes     1/1 Running          (for ever unless that is set)
    FAILING    for ever            Running    no      readiness fails
    EXITED     for ever            Succeeded or Failed, run-seconds after it started; not where it would be restarted

Of the guest in a virt-launcher pod actors/kubevirt reads boot-seconds, migration-seconds, migration-fails
and migration-failure-share.

The numbers are overridden by annotations `sim.novasphere.dev/<name>` of the node, then of the pod. Their former prefix,
`testbed.wukong/`, is read, too; where one object has both, the new one counts.

The table of the test bed's hollow kubelets and their annotations, so that one manifest behaves alike on both; a test
compares the two. Read by controller.py. Nothing here knows of time or of the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf

import msgspec

PREFIX, FORMER_PREFIX = "sim.novasphere.dev/", "testbed.wukong/"
SILENT = f"{PREFIX}silent"  # on a Node: with "true" its kubelet sends no heartbeats until it is removed
FORMER_SILENT = f"{FORMER_PREFIX}silent"


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """One row of numbers; the fields are named like the annotations. `spread` is the share left to chance."""

    pull_seconds: float = 0.1
    start_seconds: float = 0.05
    ready_seconds: float = 0.1
    never_ready: bool = False
    unready_after_seconds: float | None = None
    stop_seconds: float = 0.1
    pull_fails: bool = False
    run_seconds: float | None = None
    exit_code: int = 0
    spread: float = 0.0
    boot_seconds: float = 0.05
    migration_seconds: float | None = None  # None: by the guest's memory
    migration_fails: bool = False
    migration_failure_share: float = 0.0


class Stage(msgspec.Struct, frozen=True):
    """What the status of a pod says while a stage lasts."""

    phase: str
    is_ready: bool = False
    waiting: str = ""
    exit_code: int | None = None


Timeline = tuple[tuple[Stage, float], ...]  # stages and the seconds that each lasts
PULLING = Stage("Pending", waiting="ContainerCreating")
PULL_FAILED = Stage("Pending", waiting="ImagePullBackOff")
STARTING = Stage("Pending", waiting="ContainerCreating")
WARMING = Stage("Running")
READY = Stage("Running", is_ready=True)
FAILING = Stage("Running")
_FIELD_TYPES = {field.encode_name: field.type for field in msgspec.structs.fields(Behaviour)}


class BadAnnotationError(ValueError):
    """An annotation that cannot be read; the pod's status will say so."""


@lru_cache(4096)
def build_timeline(behaviour: Behaviour, *, may_exit: bool, chance: float = 0.0) -> Timeline:
    """The stages and how long each lasts; the last one lasts for ever. `chance` in [0, 1) stretches the first three."""
    stretch = 1.0 + behaviour.spread * chance
    pull, start = behaviour.pull_seconds * stretch, behaviour.start_seconds * stretch
    if behaviour.pull_fails:
        return ((PULLING, pull), (PULL_FAILED, inf))
    timeline = (
        (PULLING, pull),
        (STARTING, start),
        (WARMING, inf if behaviour.never_ready else behaviour.ready_seconds * stretch),
        (READY, inf if behaviour.unready_after_seconds is None else behaviour.unready_after_seconds),
        (FAILING, inf),
    )
    if behaviour.run_seconds is None or not may_exit:
        return timeline
    return _end_at(timeline, pull + start + behaviour.run_seconds, _build_exit_stage(behaviour.exit_code))


def seconds_until_ready(behaviour: Behaviour) -> float:
    """How old a pod of this row is, at most, when it gets ready."""
    return (behaviour.pull_seconds + behaviour.start_seconds + behaviour.ready_seconds) * (1.0 + behaviour.spread)


def stage_at(timeline: Timeline, age: float) -> tuple[Stage, float]:
    """The stage of a pod of this age, and the seconds until the next."""
    for stage, seconds in timeline:
        if age < seconds - 1e-6:  # the clock's own rounding must not make a stage last for another instant
            return stage, seconds - age
        age -= seconds
    return timeline[-1][0], inf


def may_exit(restart_policy: str, code: int) -> bool:
    """Whether a container that ends stays ended. Restarts are not simulated: such a container runs on."""
    return restart_policy == "Never" or (restart_policy == "OnFailure" and code == 0)


def has_annotations(annotations: Mapping[str, str]) -> bool:
    """Whether one of these tells a kubelet how to behave."""
    return any(key.startswith((PREFIX, FORMER_PREFIX)) for key in annotations)


def apply_annotations(base: Behaviour, *annotations: Mapping[str, str]) -> Behaviour:
    """The row with the numbers of these annotations in it; later ones win. Raises BadAnnotationError."""
    for mapping in annotations:
        if not mapping:
            continue
        ours = tuple((key, text) for key, text in mapping.items() if key.startswith((PREFIX, FORMER_PREFIX)))
        if ours:
            base = _replace_fields(base, ours)
    return base


@lru_cache(1024)
def _replace_fields(base: Behaviour, ours: tuple[tuple[str, str], ...]) -> Behaviour:
    chosen: dict[str, tuple[str, str]] = {}  # name → key and text; the new prefix counts where both are there
    for prefix in (FORMER_PREFIX, PREFIX):
        chosen |= {key.removeprefix(prefix): (key, text) for key, text in ours if key.startswith(prefix)}
    chosen.pop("silent", None)
    values = {name: _read_value(name, key, text) for name, (key, text) in chosen.items()}
    return msgspec.convert({**msgspec.to_builtins(base), **values}, Behaviour)


def is_silenced(annotations: Mapping[str, str]) -> bool:
    """Whether these annotations of a Node keep its kubelet from sending heartbeats."""
    return annotations.get(SILENT, annotations.get(FORMER_SILENT)) == "true"


def _read_value(name: str, key: str, text: str) -> object:
    if name not in _FIELD_TYPES:
        raise BadAnnotationError(f"{key} is unknown.")
    try:
        return msgspec.convert(text, _FIELD_TYPES[name], strict=False)
    except msgspec.ValidationError:
        raise BadAnnotationError(f'{key}: expected another value than "{text}"') from None


def _end_at(timeline: Timeline, age: float, last: Stage) -> Timeline:
    """The same stages until `age`, then `last` for ever."""
    shortened, left = [], age
    for stage, seconds in timeline:
        if left <= 0:
            break
        shortened.append((stage, min(seconds, left)))
        left -= seconds
    return (*shortened, (last, inf))


def _build_exit_stage(code: int) -> Stage:
    return Stage("Failed" if code else "Succeeded", exit_code=code)
