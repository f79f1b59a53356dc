"""KubeVirt's mutating and validating webhooks for virtual machines, their instances and migrations, as of 1.7.

    VirtualMachine          architecture and machine type filled in; a bad template refused
    VirtualMachineInstance  created by actors/kubevirt with all its defaults; refused without memory
    …Migration              gets its label and finalizer; refused if the instance cannot migrate, or does already

Called by writes.py for objects of the group kubevirt.io. Pure but for what it reads in the database. Only what
placement depends on is checked: disks, networks, devices and firmware are taken as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.api.kinds import (
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from wukong.api.kubevirt import KUBEVIRT_GROUP
from wukong.api.resources import Key
from wukong.api.vm import EVICTION_STRATEGIES, RUN_STRATEGIES
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import condition_of, is_terminating, meta_of, value_at, with_metadata
from wukong.embedded.store.kinds import ServedKind, store_name
from wukong.embedded.store.kubevirt import names
from wukong.embedded.store.kubevirt.scheduling_validation import find_enum_problems, find_scheduling_problems
from wukong.embedded.store.kubevirt.shapes import find_type_problem
from wukong.errors import Invalid
from wukong.ports import Document

_MOST_CAUSES = 10  # that one message names
_RESERVED = "creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited"
_BOTH_STRATEGIES = (
    "Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead"
)


def is_webhooks_business(kind: ServedKind) -> bool:
    return kind.resource.group == KUBEVIRT_GROUP


def admit_new(kind: ServedKind, document: Document, database: Database) -> Document:
    """Return a new object as the webhooks leave it. Raises Invalid in KubeVirt's words."""
    _check_types(kind, document)
    if kind.resource == VIRTUAL_MACHINES:
        return _admit_virtual_machine(document)
    if kind.resource == VIRTUAL_MACHINE_INSTANCES:
        causes = list(_find_memory_problems(document.get("spec") or {}))
        _raise_causes("virtualmachineinstances-create-validator.kubevirt.io", causes)
    if kind.resource == VIRTUAL_MACHINE_INSTANCE_MIGRATIONS:
        return _admit_migration(document, database)
    return document


def admit_update(kind: ServedKind, before: Document, after: Document) -> Document:
    """Return a changed object as the webhooks leave it. Status updates are not for this."""
    _check_types(kind, after)
    is_changed = before.get("spec") is not after.get("spec")
    if kind.resource == VIRTUAL_MACHINES and is_changed and not is_terminating(after):
        return _admit_virtual_machine(after)
    return after


def _check_types(kind: ServedKind, document: Document) -> None:
    if problem := find_type_problem(kind.resource, document):
        raise Invalid(f'{kind.title} "{meta_of(document).get("name", "")}" is invalid: {problem}')


def _admit_virtual_machine(document: Document) -> Document:
    spec = document.get("spec") or {}
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        document = {**document, "spec": {**spec, "template": _with_defaults(template)}}
    webhook = "virtualmachine-validator.kubevirt.io"
    _raise_causes(webhook, find_enum_problems(value_at(document, "spec.template.spec") or {}, "spec.template.spec"))
    _raise_causes(webhook, _find_machine_problems(document.get("spec") or {}))
    return document


def _with_defaults(template: Document) -> Document:
    instance = template["spec"]
    domain = instance.get("domain") or {}
    machine = domain.get("machine") or {}
    if instance.get("architecture") and machine.get("type"):
        return template
    machine = {**machine, "type": machine.get("type") or names.MACHINE_TYPE}
    architecture = instance.get("architecture") or names.ARCHITECTURE
    return {
        **template,
        "spec": {**instance, "architecture": architecture, "domain": {**domain, "machine": machine}},
    }


def _find_machine_problems(spec: Document) -> Iterator[str]:
    template = spec.get("template")
    if not isinstance(template, dict):
        yield "missing virtual machine template."
        return
    if names.RESERVED_LABELS & {*(meta_of(template).get("labels") or ())}:
        yield _RESERVED
    instance = template.get("spec") or {}
    yield from find_scheduling_problems(instance, "spec.template.spec")
    strategy = instance.get("evictionStrategy")
    if strategy is not None and strategy not in EVICTION_STRATEGIES:
        yield f"spec.template.spec.evictionStrategy is set with an unrecognized option: {strategy}"
    yield from _find_run_strategy_problems(spec)


def _find_run_strategy_problems(spec: Document) -> Iterator[str]:
    running, strategy = spec.get("running"), spec.get("runStrategy")
    if running is not None and strategy is not None:
        yield _BOTH_STRATEGIES
    if running is None and strategy is None:
        yield "RunStrategy must be specified"
    if strategy is not None and strategy not in RUN_STRATEGIES:
        yield f"Invalid RunStrategy ({strategy})"


def _find_memory_problems(spec: Document) -> Iterator[str]:
    domain = spec.get("domain") or {}
    memory = domain.get("memory") or {}
    has_request = bool(value_at(domain, "resources.requests.memory"))
    if not has_request and memory.get("guest") is None and memory.get("hugepages") is None:
        yield (
            "no memory requested, at least one of 'spec.domain.memory.guest', 'spec.domain.memory.hugepages.size' or "
            "'spec.domain.resources.requests.memory' must be set"
        )


def _admit_migration(document: Document, database: Database) -> Document:
    name = value_at(document, "spec.vmiName") or ""
    key = Key(meta_of(document).get("namespace", ""), name)
    if problem := _find_migration_problem(key, database):
        raise _deny("migration-create-validator.kubevirt.io", problem)
    meta = meta_of(document)
    finalizers = meta.get("finalizers") or []
    if names.MIGRATION_FINALIZER not in finalizers:
        finalizers = [*finalizers, names.MIGRATION_FINALIZER]
    labels = {**(meta.get("labels") or {}), names.VMI_NAME_LABEL: name}
    return with_metadata(document, labels=labels, finalizers=finalizers)


def _find_migration_problem(key: Key, database: Database) -> str:
    instance = database.get(store_name(VIRTUAL_MACHINE_INSTANCES), key)
    if instance is None:
        return f'the VMI "{key}" does not exist'
    if value_at(instance, "status.phase") in names.FINAL_PHASES:
        return "Cannot migrate VMI in finalized state."
    migratable = condition_of(instance, "LiveMigratable") or {}
    if migratable.get("status") == "False":
        reason, message = migratable.get("reason", ""), migratable.get("message", "")
        return f"Cannot migrate VMI, Reason: {reason}, Message: {message}"
    for migration in database.list_objects(store_name(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS), key.namespace):
        is_final = value_at(migration, "status.phase") in names.FINAL_PHASES
        if value_at(migration, "spec.vmiName") == key.name and not is_final:
            job = f"Active migration job ({meta_of(migration)['uid']}) is currently already in progress"
            return f"in-flight migration detected. {job} for VMI {key.name}."
    return ""


def _raise_causes(webhook: str, problems: Iterable[str]) -> None:
    causes = list(problems)
    if not causes:
        return
    message = ", ".join(causes[:_MOST_CAUSES])
    if len(causes) > _MOST_CAUSES:
        message += f", and {len(causes) - _MOST_CAUSES} more validation errors"
    error = _deny(webhook, message)
    error.code, error.reason = 422, "Invalid"
    raise error


def _deny(webhook: str, message: str) -> Invalid:
    """A refusal as the API server words it. KubeVirt answers 400 where it names no fields."""
    return Invalid(f'admission webhook "{webhook}" denied the request: {message}', reason="", code=400)
