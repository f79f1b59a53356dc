"""What a hollow virt-handler does next with a VirtualMachineInstance: a function of what it sees. handler.py does it.

    Scheduled --boot-seconds--> Running --guest shut down, or its pod deleted and stop-seconds over--> Succeeded
                                   |                          --its pod failed--> Failed
                                   v
    migration: target's address -> started --migration-seconds--> domain on target -> ended, node changed -> completed
                                                             `--> failed, or aborted where that was asked for

Every arrow is one write, as the real virt-handlers of source and target make them (pkg/virt-handler/migration-*.go):
virt-controller's migration goes through all its phases. Nothing here knows of HTTP.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from math import inf

import msgspec

from testbed import nodes
from testbed.behaviour import Behaviour
from testbed.client import Json
from testbed.kubevirt import migratability
from testbed.pod_status import stamp

NODE_LABEL, TARGET_LABEL = "kubevirt.io/nodeName", "kubevirt.io/migrationTargetNodeName"
CREATED_BY = "kubevirt.io/created-by"
OUTDATED_LABEL = "kubevirt.io/outdatedLauncherImage"
EVICTION_SOURCE = "kubevirt.io/eviction-source"
HOTPLUG_LABELS = (
    "kubevirt.io/vmi-pod-cpu-resource-limits",
    "kubevirt.io/vmi-pod-memory-resource-requests",
    "kubevirt.io/memory-hotplug-overhead-ratio",
)
HOTPLUG_CONDITIONS = ("HotVCPUChange", "HotMemoryChange", "VolumesChange")
# As Go writes times that are not set. virt-controller's patches test for the conditions exactly as Go would write them.
NO_TIMES = {"lastProbeTime": None, "lastTransitionTime": None}
FINAL = ("Succeeded", "Failed")
PORTS = {"49152": 0}  # qemu's; a hollow node listens nowhere

Age = Callable[[str], float]  # seconds since this was first asked for the same VirtualMachineInstance


class Step(msgspec.Struct, frozen=True):
    """What to do now: write the VirtualMachineInstance, end virt-launcher pods, look again later."""

    vmi: Json | None = None
    ended_pods: Sequence[str] = ()
    again_after: float = inf


class View(msgspec.Struct, frozen=True):
    """All that the decision depends on."""

    vmi: Json
    pods: Sequence[Json]  # the virt-launcher pods that were created for it
    behaviour: Behaviour
    silent_nodes: frozenset[str]
    age: Age
    now: float

    @property
    def status(self) -> Json:
        status: Json = self.vmi["status"]
        return status

    @property
    def own_pod(self) -> Json | None:
        """The one that the guest runs in."""
        on_node = [pod for pod in self.pods if pod["spec"].get("nodeName") == self.status.get("nodeName")]
        return min(on_node, key=is_over, default=None)

    def copy(self) -> Json:
        return copy.deepcopy(self.vmi)

    def is_silent(self, node: str) -> bool:
        return node in self.silent_nodes


def next_step(view: View) -> Step:
    phase = view.status.get("phase")
    if phase in FINAL:
        return Step(ended_pods=[pod["metadata"]["name"] for pod in view.pods])
    if phase not in ("Scheduled", "Running") or view.own_pod is None or view.is_silent(view.status["nodeName"]):
        return Step()  # virt-controller's turn
    if is_over(view.own_pod):
        return Step(vmi=in_phase(view, str(view.own_pod["status"]["phase"])))
    if "deletionTimestamp" in view.own_pod["metadata"]:
        return shut_down(view)
    if phase == "Scheduled":
        return boot(view)
    return migrate(view) or show_conditions(view)


def is_over(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in FINAL


def boot(view: View) -> Step:
    left = view.behaviour.boot_seconds - view.age("boot")
    if left > 0:
        return Step(again_after=left)
    return Step(vmi=with_conditions(in_phase(view, "Running")))


def shut_down(view: View) -> Step:
    """The pod is being deleted. A guest that never ran has failed."""
    if view.status["phase"] == "Scheduled":
        return Step(vmi=in_phase(view, "Failed"))
    left = view.behaviour.stop_seconds - view.age("shutdown")
    return Step(again_after=left) if left > 0 else Step(vmi=in_phase(view, "Succeeded"))


def in_phase(view: View, phase: str) -> Json:
    vmi = view.copy()
    vmi["status"]["phase"] = phase
    times = vmi["status"].setdefault("phaseTransitionTimestamps", [])
    if all(time["phase"] != phase for time in times):
        times.append({"phase": phase, "phaseTransitionTimestamp": stamp(view.now)})
    return vmi


# Conditions ---------------------------------------------------------------------------------------------------------


def show_conditions(view: View) -> Step:
    vmi = with_conditions(view.copy())
    return Step(vmi=vmi) if vmi != view.vmi else Step()


def with_conditions(vmi: Json) -> Json:
    """Whether it can be migrated, and how; selinuxContext, without which no migration starts."""
    status = vmi["status"]
    set_condition(status, "LiveMigratable", migratability.find_obstacle(vmi))
    obstacle = migratability.find_unmovable_hardware(vmi)
    if obstacle:
        obstacle = migratability.Obstacle("NotMigratable", f"{obstacle.reason}: {obstacle.message}")
    set_condition(status, "StorageLiveMigratable", obstacle)
    status["migrationMethod"] = "BlockMigration" if migratability.is_block_migration(vmi) else "LiveMigration"
    status["selinuxContext"] = "none"
    return vmi


def set_condition(status: Json, kind: str, obstacle: migratability.Obstacle | None) -> None:
    conditions = status.setdefault("conditions", [])
    wanted = {"type": kind, "status": "False" if obstacle else "True", **NO_TIMES}
    wanted |= {"reason": obstacle.reason, "message": obstacle.message} if obstacle else {}
    known = next((condition for condition in conditions if condition["type"] == kind), None)
    if known is None:
        conditions.append(wanted)
    elif known != wanted:
        conditions[conditions.index(known)] = wanted


# Migration ----------------------------------------------------------------------------------------------------------


def migrate(view: View) -> Step | None:
    """The next step of the migration that was handed over to us; None where there is none."""
    state = view.status.get("migrationState") or {}
    target = view.vmi["metadata"].get("labels", {}).get(TARGET_LABEL)
    if state.get("endTimestamp") and (state.get("completed") or state.get("failed")):
        return finish_migration(view, state, target)
    if not target or not state.get("migrationUid") or view.is_silent(target):
        return None
    return write_migration(view, state, target)


def write_migration(view: View, state: Json, target: str) -> Step:
    now = stamp(view.now)
    if not state.get("targetNodeAddress"):
        return change(view, targetNodeAddress=nodes.address(target), targetDirectMigrationNodePorts=PORTS)
    if not state.get("startTimestamp"):
        return change(view, startTimestamp=now, mode="PreCopy")
    if state.get("endTimestamp"):
        return complete_migration(view)
    if state.get("abortRequested"):
        reason = "Live migration aborted"
        return change(view, abortStatus="Succeeded", failed=True, endTimestamp=now, failureReason=reason)
    left = view.behaviour.migration_seconds - view.age(f"migration {state['migrationUid']}")
    if left > 0:
        return Step(again_after=left)
    if view.behaviour.migration_fails:
        return change(view, failed=True, endTimestamp=now, failureReason="Live migration failed: told to fail")
    if not state.get("targetNodeDomainReadyTimestamp"):
        return change(view, targetNodeDomainDetected=True, targetNodeDomainReadyTimestamp=now)
    return hand_over(view, target)


def change(view: View, **values: object) -> Step:
    """Write these into the state of the migration."""
    vmi = view.copy()
    vmi["status"]["migrationState"] |= values
    return Step(vmi=vmi)


def hand_over(view: View, target: str) -> Step:
    """The guest runs on the target, whose virt-handler owns it from now on."""
    vmi = view.copy()
    status, metadata = vmi["status"], vmi["metadata"]
    status["migrationState"]["endTimestamp"] = stamp(view.now)
    status |= {"nodeName": target, "migrationTransport": "Unix"}
    for key in ("evacuationNodeName", "launcherContainerImageVersion"):
        status.pop(key, None)
    status["conditions"] = [known for known in status.get("conditions", ()) if known["type"] != "MigrationRequired"]
    metadata["labels"][NODE_LABEL] = target
    metadata["labels"].pop(OUTDATED_LABEL, None)
    metadata.get("annotations", {}).pop(EVICTION_SOURCE, None)
    return Step(vmi=vmi)


def complete_migration(view: View) -> Step:
    """What was to be plugged in while running is plugged in on the target."""
    vmi = view.copy()
    status, domain = vmi["status"], vmi["spec"]["domain"]
    status["migrationState"]["completed"] = True
    changes = {known["type"] for known in status.get("conditions", ())} & set(HOTPLUG_CONDITIONS)
    if "HotVCPUChange" in changes:
        status["currentCPUTopology"] = {key: domain["cpu"][key] for key in ("sockets", "cores", "threads")}
    if "HotMemoryChange" in changes:
        status["memory"] |= dict.fromkeys(("guestCurrent", "guestRequested"), domain["memory"]["guest"])
    status["conditions"] = [known for known in status.get("conditions", ()) if known["type"] not in changes]
    for label in HOTPLUG_LABELS:
        vmi["metadata"]["labels"].pop(label, None)
    return Step(vmi=vmi)


def finish_migration(view: View, state: Json, target: str | None) -> Step | None:
    """Take the label away, which is the target's last write, and end the pod that is left over."""
    left_over = state.get("targetPod" if state.get("failed") else "sourcePod")
    alive = [str(pod["metadata"]["name"]) for pod in view.pods if not has_ended(pod)]
    ended = [name for name in alive if name == left_over]
    if target is None:
        return Step(ended_pods=ended) if ended else None
    vmi = view.copy()
    del vmi["metadata"]["labels"][TARGET_LABEL]
    return Step(vmi=vmi, ended_pods=ended)


def has_ended(pod: Json) -> bool:
    return is_over(pod) or pod["metadata"].get("annotations", {}).items() >= ENDED.items()


ENDED: Mapping[str, str] = {"sim.novasphere.dev/run-seconds": "0"}  # annotation: the pod's containers are over
