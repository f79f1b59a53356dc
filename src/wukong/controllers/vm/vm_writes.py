"""What to write so that the VirtualMachines of a Wukong are as it says.

    absent            ─► apply, without force: what somebody else made meanwhile is a conflict, and not taken over
    ours, differs     ─► apply with force, at the version that was read; repairs in a row wait longer each time
    ours, not asked   ─► delete, the highest index first
    ours, leaving     ─► wait until it is gone, then it is absent
    somebody else's   ─► nothing; the name is taken

A field that the Wukong has no more is found by ANNOTATION: a digest of what was applied. Server-side apply then removes
what we applied before and do not any more. At most MOST_WRITES at a time: what is created comes back as a change.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from wukong.actions import Action, Delete, Note, Patch
from wukong.api.kinds import VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.api.vm import Wukong
from wukong.controllers.vm.drift import find_drift
from wukong.controllers.vm.machines import Machine, is_leaving
from wukong.placement.vm import VmSettings, build_virtual_machine
from wukong.ports import Document, PatchBody

ANNOTATION = "vm.novasphere.dev/applied"
MOST_WRITES = 64
REPAIR_SECONDS, LONGEST_REPAIR_SECONDS = 1.0, 300.0
CALM_SECONDS = 600.0  # after so long without a repair the next one need not wait
MOST_NAMES = 5


class Writes(msgspec.Struct):
    """What to do, in order; `again_after` is when a repair that must wait is due."""

    actions: list[Action] = []
    again_after: float | None = None


class Repair(msgspec.Struct, frozen=True):
    """How often in a row a VirtualMachine was applied again, and when last."""

    count: int
    at: float

    @property
    def wait_seconds(self) -> float:
        return min(REPAIR_SECONDS * float(1 << min(self.count - 1, 16)), LONGEST_REPAIR_SECONDS)


class VmWriter:
    """Remembers which VirtualMachines were found as they should be, and how often each was repaired lately.

    Losing that costs a comparison of each, and at most one repair each.
    """

    def __init__(self, settings: VmSettings) -> None:
        self.settings = settings
        self._verified: dict[Key, dict[str, tuple[str, int, str]]] = {}  # Wukong → VM → uid, generation, version
        self._repairs: dict[Key, dict[str, Repair]] = {}

    def copy_memory(self, source: VmWriter) -> None:
        self._verified = {key: dict(verified) for key, verified in source._verified.items()}
        self._repairs = {key: dict(repairs) for key, repairs in source._repairs.items()}

    def forget(self, key: Key) -> None:
        """The Wukong is gone."""
        self._verified.pop(key, None)
        self._repairs.pop(key, None)

    def plan(self, wukong: Wukong, wanted: list[Machine], surplus: list[Machine], now: float) -> Writes:
        writes = Writes(actions=[])
        self._delete_surplus(wukong, surplus, writes)
        for machine in wanted:
            if len(writes.actions) >= MOST_WRITES:
                break
            if machine.vm is None:
                writes.actions += self._create(wukong, machine.name)
            elif machine.is_owned and not is_leaving(machine.vm):
                self._repair(wukong, machine.vm, writes, now)
        return writes

    def _create(self, wukong: Wukong, name: str) -> list[Action]:
        document, _ = self._build(wukong, name)
        key = Key(wukong.metadata.namespace, name)
        note = build_note(wukong, "Created", f"VirtualMachine {name} is created.")
        return [Patch(VIRTUAL_MACHINES, key, PatchBody("apply", document)), note]

    def _repair(self, wukong: Wukong, vm: VirtualMachine, writes: Writes, now: float) -> None:
        """Apply it again if it lacks something of ours, or has something that we applied and do not want any more."""
        key, name, meta = key_of(wukong), vm.metadata.name, vm.metadata
        verified = self._verified.setdefault(key, {})
        look = (wukong.metadata.uid, wukong.metadata.generation, meta.resource_version)
        if verified.get(name) == look:
            return
        document, digest = self._build(wukong, name)
        is_changed = meta.annotations.get(ANNOTATION) != digest
        paths = [] if is_changed else _find_vm_drift(vm, document)
        if not is_changed and not paths:
            verified[name] = look
            return
        repairs = self._repairs.setdefault(key, {})
        if paths and (wait := _find_wait(repairs.get(name), now)) > 0:
            writes.again_after = min(wait, writes.again_after or wait)
            return
        if paths:
            before = repairs.get(name)
            is_calm = before is None or now - before.at >= CALM_SECONDS
            repairs[name] = Repair(1 if before is None or is_calm else before.count + 1, now)
            text = f"VirtualMachine {name} differed at {', '.join(paths)}: applied again."
            writes.actions.append(build_note(wukong, "DriftRepaired", text))
        document["metadata"]["resourceVersion"] = meta.resource_version
        writes.actions.append(Patch(VIRTUAL_MACHINES, key_of(vm), PatchBody("apply", document, force=True)))

    def _delete_surplus(self, wukong: Wukong, surplus: list[Machine], writes: Writes) -> None:
        leaving = [machine for machine in surplus if machine.vm is not None and not is_leaving(machine.vm)]
        leaving.sort(key=lambda machine: index_of(machine.name), reverse=True)
        for machine in leaving[:MOST_WRITES]:
            assert machine.vm is not None
            key = key_of(machine.vm)
            writes.actions.append(Delete(VIRTUAL_MACHINES, key, uid=machine.vm.metadata.uid, propagation="Background"))
        if leaving:
            names = [machine.name for machine in leaving[:MOST_WRITES]]
            writes.actions.append(
                build_note(wukong, "ScaledDown", f"Deleted {name_some(names)}: not asked for any more.")
            )

    def _build(self, wukong: Wukong, name: str) -> tuple[Document, str]:
        """The document to apply, and the digest that it carries."""
        document = build_virtual_machine(wukong, name, self.settings)
        digest = blake2b(msgspec.json.encode(document, order="sorted"), digest_size=12).hexdigest()
        metadata = document.setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), ANNOTATION: digest}
        return document, digest


def _find_vm_drift(vm: VirtualMachine, document: Document) -> list[str]:
    wanted = document["metadata"]
    live: dict[str, Any] = {"labels": vm.metadata.labels, "annotations": vm.metadata.annotations}
    meta = {name: wanted[name] for name in live if name in wanted}
    return [*find_drift(live, meta, "$.metadata"), *find_drift(vm.spec, document["spec"], "$.spec")]


def _find_wait(repair: Repair | None, now: float) -> float:
    """Seconds until it may be repaired once more: somebody else may keep undoing what we do."""
    return 0.0 if repair is None else repair.at + repair.wait_seconds - now


def describe_owner(vm: VirtualMachine) -> str:
    owner = controller_of(vm.metadata)
    return "nobody in particular" if owner is None else f"{owner.kind} {owner.name}"


def index_of(name: str) -> int:
    """The number at the end of a name; -1 where there is none."""
    index = name.rpartition("-")[2]
    return int(index) if index.isdecimal() and len(index) <= 9 else -1


def name_some(names: list[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def build_note(wukong: Wukong, reason: str, text: str, *, is_warning: bool = False) -> Note:
    """An Event about the Wukong."""
    return Note(WUKONGS, key_of(wukong), reason, text[:1024], uid=wukong.metadata.uid, is_warning=is_warning)
