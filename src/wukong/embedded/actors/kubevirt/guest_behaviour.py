"""What a hollow guest does, as a table of seconds: how long it boots, and how long its memory takes to be copied.

    boot-seconds                from Scheduled to Running                                            0.1
    migration-seconds-per-gib   how long a live migration lasts, by the guest's memory               10
    migration-fails             every migration of it fails when it should end                       false

The numbers are overridden by annotations `vm.sim.novasphere.dev/<name>` of the instance, which come from the template
of its VirtualMachine. What is no number is taken as if it were not there. Read by handlers.py; pure.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

PREFIX = "vm.sim.novasphere.dev/"
COMPLETION_SECONDS_PER_GIB = 150.0  # KubeVirt's completionTimeoutPerGiB: a slower migration is aborted


class GuestBehaviour(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The fields are named like the annotations."""

    boot_seconds: float = 0.1
    migration_seconds_per_gib: float = 10.0
    migration_fails: bool = False


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(GuestBehaviour)}


def read_behaviour(annotations: Mapping[str, str]) -> GuestBehaviour:
    values = {}
    for key, text in annotations.items():
        field = _FIELDS.get(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
        if field is None:
            continue
        try:
            values[field.name] = msgspec.convert(text, field.type, strict=False)
        except msgspec.ValidationError:
            continue
    return GuestBehaviour(**values)


def migration_seconds(behaviour: GuestBehaviour, guest_bytes: int) -> float:
    return behaviour.migration_seconds_per_gib * guest_bytes / 2**30


def most_migration_seconds(guest_bytes: int) -> float:
    """How long a migration may take before it is aborted; part of a GiB counts as one."""
    return COMPLETION_SECONDS_PER_GIB * max(1, -(-guest_bytes // 2**30))
