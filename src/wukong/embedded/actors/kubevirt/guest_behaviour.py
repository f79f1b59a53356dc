"""What a hollow guest does: how long it boots, how long its memory takes to be copied, whether that succeeds. Pure.

    boot-seconds         from Scheduled to Running                       0.05
    migration-seconds    how long a live migration copies                10 for each GiB of the guest's memory
    migration-fails      every migration of it fails when it should end  false
    migration-failure-share    the share of its migrations that do       0; the test bed does not know it

The numbers are overridden by annotations `sim.novasphere.dev/<name>` of the instance, which come from the template of
its VirtualMachine, as on the test bed. Where one of them cannot be read none counts; the kubelet says so on the pod.
Read by handlers.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from wukong.embedded.actors.kubelet.behaviour import BadAnnotationError, Behaviour, apply_annotations

SECONDS_PER_GIB = 10.0
COMPLETION_SECONDS_PER_GIB = 150.0  # KubeVirt's completionTimeoutPerGiB: a slower migration is aborted
_DEFAULT = Behaviour()


def read_behaviour(annotations: Mapping[str, str]) -> Behaviour:
    try:
        return apply_annotations(_DEFAULT, annotations)
    except BadAnnotationError:
        return _DEFAULT


def migration_seconds(behaviour: Behaviour, guest_bytes: int) -> float:
    if behaviour.migration_seconds is not None:
        return behaviour.migration_seconds
    return SECONDS_PER_GIB * guest_bytes / 2**30


def most_migration_seconds(guest_bytes: int) -> float:
    """How long a migration may take before it is aborted; part of a GiB counts as one."""
    return COMPLETION_SECONDS_PER_GIB * max(1, -(-guest_bytes // 2**30))
