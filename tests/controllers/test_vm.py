"""The vm controller, look by look: what it writes of virtual machines, and what it says on the Wukong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node
from vms import NOW, a_launcher, a_migration, a_vm, a_wukong, an_instance, migratable, running
from wukong.actions import DONE, Delete, Note, Outcome, Patch
from wukong.api.core import PriorityClass
from wukong.api.kinds import VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.resources import Key
from wukong.api.times import format_time
from wukong.api.unreadable import Unreadable, read_document
from wukong.api.vm import Wukong
from wukong.controllers.vm.controller import MOST_TURNS, STATUS_SECONDS, VirtualMachineController
from wukong.controllers.vm.priority_classes import UNUSED
from wukong.controllers.vm.priority_limits import PriorityLimits
from wukong.controllers.vm.vm_writes import ANNOTATION, MOST_WRITES
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document
from wukong.state import State

KEY = Key("shop", "web")
NO_NODE = "0/1 nodes are available: 1 Insufficient memory."


def a_state(*objects: Object) -> State:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return state


def a_controller(**limits: Any) -> VirtualMachineController:
    return VirtualMachineController(BUILT_IN, limits=PriorityLimits(**limits))


def look(*objects: Object, now: float = NOW, **limits: Any) -> Outcome:
    return a_controller(**limits).reconcile(KEY, a_state(*objects), now)


def applies(outcome: Outcome) -> list[Patch]:
    return [action for action in outcome.actions if isinstance(action, Patch) and action.resource == VIRTUAL_MACHINES]


def applied_names(outcome: Outcome) -> list[str]:
    return [patch.key.name for patch in applies(outcome)]


def deleted_names(outcome: Outcome) -> list[str]:
    return [action.key.name for action in outcome.actions if isinstance(action, Delete)]


def status_of(outcome: Outcome) -> Document:
    (patch,) = [action for action in outcome.actions if isinstance(action, Patch) and action.resource == WUKONGS]
    assert patch.subresource == "status"
    assert patch.patch.body["metadata"] == {"resourceVersion": "7"}
    status: Document = patch.patch.body["status"]
    return status


def condition(outcome: Outcome, kind: str) -> tuple[str, str, str]:
    (entry,) = [entry for entry in status_of(outcome)["conditions"] if entry["type"] == kind]
    return entry["status"], entry["reason"], entry["message"]


def notes(outcome: Outcome) -> dict[str, str]:
    return {action.reason: action.text for action in outcome.actions if isinstance(action, Note)}


def applied(wukong: Wukong, **given: Any) -> list[VirtualMachine]:
    """The VirtualMachines of a Wukong, as the API server has them after a first look."""
    return [a_vm(patch.patch.body, **given) for patch in applies(look(wukong))]


def settled(wukong: Wukong, *others: Object, now: float = NOW) -> Wukong:
    """The Wukong with the status that it has beside these objects."""
    outcome = look(wukong, *others, now=now)
    if not any(isinstance(action, Patch) and action.resource == WUKONGS for action in outcome.actions):
        return wukong
    status = msgspec.convert(status_of(outcome), type(wukong.status))
    return msgspec.structs.replace(wukong, status=status)


# What is written ---------------------------------------------------------------------------------------------------


def test_a_new_wukong_gets_its_virtual_machine_applied_without_force() -> None:
    outcome = look(a_wukong())
    (patch,) = applies(outcome)
    assert (patch.key, patch.patch.type, patch.patch.manager, patch.patch.force) == (KEY, "apply", "wukong", False)
    assert patch.patch.body["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert notes(outcome)["Created"] == "VirtualMachine web is created."
    assert condition(outcome, "Accepted")[:2] == ("True", "Understood")
    assert condition(outcome, "Bootable")[:2] == ("True", "HasDisk")
    assert condition(outcome, "Ready")[:2] == ("False", "NotReady")
    assert condition(outcome, "RestartRequired")[:2] == ("False", "UpToDate")


def test_replicas_are_numbered_from_zero() -> None:
    assert applied_names(look(a_wukong(replicas=3))) == ["web-0", "web-1", "web-2"]
    assert applied_names(look(a_wukong(replicas=0))) == []


def test_no_disk_is_built_all_the_same_and_said() -> None:
    outcome = look(a_wukong(disks=[]))
    assert applied_names(outcome) == ["web"]
    assert condition(outcome, "Bootable")[:2] == ("False", "NoDisk")


def test_what_is_as_it_should_be_is_not_written_again() -> None:
    wukong = a_wukong(replicas=2)
    vms = applied(wukong, status=running())
    instances = [an_instance(vm, f"node-{index}") for index, vm in enumerate(vms)]
    others = [*vms, *instances]
    assert look(settled(wukong, *others), *others, now=NOW + 60) == DONE


def test_defaults_that_kubevirt_fills_in_and_quantities_written_otherwise_are_no_drift() -> None:
    wukong = a_wukong(memory="1024Mi")
    (vm,) = applied(wukong)
    vm.spec["template"]["spec"]["domain"]["memory"]["guest"] = "1Gi"
    vm.spec["template"]["spec"]["domain"]["machine"] = {"type": "q35"}
    vm.spec["template"]["spec"]["architecture"] = "amd64"
    vm.metadata.labels["kubevirt.io/vm"] = "x"
    assert applies(look(wukong, vm)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("template", "spec", "domain", "memory", "guest"), "2Gi"),
        (("template", "spec", "evictionStrategy"), "None"),
        (("runStrategy",), "Halted"),
        (("template", "metadata", "labels"), {}),
        (("template", "spec", "volumes"), []),
    ],
)
def test_drift_is_repaired_with_force_at_the_version_that_was_read(path: tuple[str, ...], value: Any) -> None:
    wukong = a_wukong()
    (vm,) = applied(wukong)
    place = vm.spec
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    outcome = look(wukong, vm)
    (patch,) = applies(outcome)
    assert patch.patch.force
    assert patch.patch.body["metadata"]["resourceVersion"] == "1"
    assert "$.spec." + ".".join(path) in notes(outcome)["DriftRepaired"]


def test_a_field_that_the_wukong_has_no_more_is_applied_away() -> None:
    tolerations = [{"key": "spot", "operator": "Exists"}]
    (vm,) = applied(a_wukong(scheduling={"tolerations": tolerations}))
    outcome = look(a_wukong(generation=2), vm)
    (patch,) = applies(outcome)
    assert "tolerations" not in patch.patch.body["spec"]["template"]["spec"]
    assert "DriftRepaired" not in notes(outcome)


@pytest.mark.slow
def test_whoever_keeps_undoing_what_we_do_makes_us_wait_longer_each_time() -> None:
    wukong, controller = a_wukong(), a_controller()
    (vm,) = applied(wukong)
    vm.spec["runStrategy"] = "Halted"
    writes, now = 0, NOW
    for number in range(3600):
        state = a_state(wukong, msgspec.structs.replace(vm, metadata=_versioned(vm, str(number))))
        outcome = controller.reconcile(KEY, state, now)
        writes += len(applies(outcome))
        now += 1
    assert 8 <= writes <= 22  # 1, 2, 4 … 300 s apart


def _versioned(vm: VirtualMachine, version: str) -> ObjectMeta:
    return msgspec.structs.replace(vm.metadata, resource_version=version)


def test_scaling_down_deletes_the_highest_and_says_which() -> None:
    vms = applied(a_wukong(replicas=12))
    outcome = look(a_wukong(replicas=9, generation=2), *vms)
    assert deleted_names(outcome) == ["web-11", "web-10", "web-9"]
    (first, *_) = [action for action in outcome.actions if isinstance(action, Delete)]
    assert first.uid == "vm-web-11"
    assert notes(outcome)["ScaledDown"] == "Deleted web-11, web-10, web-9: not asked for any more."


def test_what_is_being_deleted_is_left_to_go() -> None:
    wukong = a_wukong(replicas=1)
    extra, *_ = applied(a_wukong(replicas=2), deletionTimestamp="2027-01-15T07:59:00Z")[1:]
    (kept,) = applied(wukong, deletionTimestamp="2027-01-15T07:59:00Z")
    outcome = look(wukong, kept, extra)
    assert (applied_names(outcome), deleted_names(outcome)) == ([], [])


def test_a_virtual_machine_of_somebody_else_is_not_taken_over() -> None:
    wukong = a_wukong(replicas=2)
    vm = applied(wukong)[0]
    vm.metadata.owner_references = [OwnerReference(kind="VirtualMachinePool", name="pool", uid="p", controller=True)]
    outcome = look(wukong, vm)
    assert applied_names(outcome) == ["web-1"]
    status, reason, message = condition(outcome, "Ready")
    assert (status, reason) == ("False", "NameTaken")
    assert "web-0" in message
    assert "VirtualMachinePool pool" in message
    assert status_of(outcome)["reason"] == "NameTaken"


def test_the_virtual_machine_of_an_earlier_wukong_of_this_name_is_somebody_elses() -> None:
    wukong = a_wukong()
    (vm,) = applied(wukong)
    vm.metadata.owner_references[0].uid = "uid-before"
    outcome = look(wukong, vm)
    assert (applied_names(outcome), deleted_names(outcome)) == ([], [])
    assert condition(outcome, "Ready")[1] == "NameTaken"


def test_at_most_so_many_are_written_at_a_time() -> None:
    assert len(look(a_wukong(replicas=1000)).actions) <= MOST_WRITES + 8


def test_a_wukong_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    wukong = a_wukong()
    wukong.metadata.deletion_timestamp = "2027-01-15T07:59:00Z"
    assert look(wukong) == DONE


def test_a_wukong_that_is_gone_is_left_alone() -> None:
    assert look() == DONE


def test_what_is_applied_carries_a_digest_of_itself() -> None:
    first, second = (applies(look(a_wukong(cpu=cpu)))[0].patch.body for cpu in (1, 2))
    digests = [body["metadata"]["annotations"][ANNOTATION] for body in (first, second)]
    assert digests[0] != digests[1]
    assert applies(look(a_wukong(cpu=1)))[0].patch.body == first


# Not accepted ------------------------------------------------------------------------------------------------------


BAD = {"schedulingPolicy": {"rules": [{"name": "cost-awar", "type": "score"}]}}


def test_a_wukong_with_problems_changes_nothing_of_what_runs() -> None:
    vms = applied(a_wukong(replicas=2), status=running())
    outcome = look(a_wukong(replicas=1, cpu=9, generation=2, scheduling=BAD), *vms)
    assert (applied_names(outcome), deleted_names(outcome)) == ([], [])
    status, reason, message = condition(outcome, "Accepted")
    assert (status, reason) == ("False", "Invalid")
    assert message.startswith("$.spec.scheduling.schedulingPolicy.rules[0].name")
    assert status_of(outcome)["readyReplicas"] == 1
    assert "cost-awar" in notes(outcome)["Invalid"]


def test_a_wukong_that_cannot_be_read_is_told_why_once() -> None:
    meta = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2}
    document: Document = {"metadata": meta, "spec": {"cpu": "many"}, "status": {"replicas": 2}}
    unreadable = read_document(document, Wukong)
    assert isinstance(unreadable, Unreadable)
    state = State()
    state.apply("ADDED", unreadable, WUKONGS.group_kind)
    outcome = a_controller().reconcile(KEY, state, NOW)
    assert condition(outcome, "Accepted")[:2] == ("False", "Unreadable")
    assert "$.spec.cpu" in condition(outcome, "Accepted")[2]
    document["status"] |= status_of(outcome)
    state.apply("MODIFIED", read_document(document, Wukong), WUKONGS.group_kind)
    assert a_controller().reconcile(KEY, state, NOW + 60) == DONE


def test_without_kubevirt_that_is_said_and_looked_at_again() -> None:
    state = a_state(a_wukong())
    state.missing_kinds.add(VIRTUAL_MACHINES.group_kind)
    outcome = a_controller().reconcile(KEY, state, NOW)
    assert applies(outcome) == []
    assert condition(outcome, "Ready")[:2] == ("False", "KubeVirtMissing")
    assert outcome.requeue_after == 30


def test_what_kubevirt_refuses_is_told_on_the_wukong() -> None:
    state = a_state(a_wukong())
    state.attempts.record_failure("vm", KEY, "Invalid: admission webhook denied the request: weight 0", NOW)
    outcome = a_controller().reconcile(KEY, state, NOW)
    assert condition(outcome, "Ready")[1] == "WriteFailed"
    assert "weight 0" in condition(outcome, "Ready")[2]
    assert isinstance(outcome.actions[0], Patch)
    assert outcome.actions[0].resource == WUKONGS, "the status must not be stuck behind what is refused"


# How they fare -----------------------------------------------------------------------------------------------------


def test_the_status_tells_of_each_virtual_machine() -> None:
    wukong = a_wukong(replicas=2)
    first, second = applied(wukong, status=running())
    second.status.ready = False
    second.status.printable_status = "Starting"
    instance = an_instance(first, "node-a", conditions=migratable())
    outcome = look(wukong, first, second, instance)
    status = status_of(outcome)
    assert status["vms"] == [
        {"name": "web-0", "phase": "Running", "node": "node-a", "ready": True, "migratable": True},
        {"name": "web-1", "phase": "Starting"},
    ]
    assert (status["replicas"], status["readyReplicas"], status["node"], status["reason"]) == (2, 1, "node-a", "")
    assert condition(outcome, "Ready") == ("False", "NotReady", "1 of 2 are ready.")
    assert condition(outcome, "Placed")[:2] == ("False", "Starting")


def test_several_nodes_are_counted() -> None:
    wukong = a_wukong(replicas=2)
    vms = applied(wukong, status=running())
    outcome = look(wukong, *vms, *(an_instance(vm, f"node-{vm.metadata.name}") for vm in vms))
    assert status_of(outcome)["node"] == "2 nodes"
    assert condition(outcome, "Ready")[:2] == ("True", "AllReady")
    assert condition(outcome, "Placed")[:2] == ("True", "Placed")


def unplaced(scheduling: dict[str, Any] | None = None, **launcher: Any) -> tuple[Wukong, list[Object]]:
    wukong = a_wukong(scheduling=scheduling)
    (vm,) = applied(wukong, status={"printableStatus": "ErrorUnschedulable"})
    instance = an_instance(vm)
    return wukong, [vm, instance, a_launcher(instance, **launcher)]


def test_the_schedulers_reason_is_told_with_the_smallest_fix() -> None:
    wukong, objects = unplaced(refusal=NO_NODE)
    outcome = look(wukong, *objects, a_node(memory="512Mi"))
    status, reason, message = condition(outcome, "Placed")
    assert (status, reason) == ("False", "Unschedulable")
    assert message.startswith(f"web: {NO_NODE} Smallest fix: ask for at most 512Mi memory")
    assert status_of(outcome)["reason"] == "Unschedulable"
    (vm,) = status_of(outcome)["vms"]
    assert (vm["reason"], vm["message"]) == ("Unschedulable", NO_NODE)
    assert notes(outcome)["Unschedulable"] == message


def test_the_fix_names_the_rule_that_no_node_satisfies() -> None:
    wukong, objects = unplaced(
        {"nodeSelector": {"disk": "ssd"}}, refusal="0/1 nodes are available: 1 node(s) didn't match"
    )
    message = condition(look(wukong, *objects, a_node()), "Placed")[2]
    assert "drop disk=ssd from nodeSelector" in message


def test_a_node_without_kubevirt_is_named_as_such() -> None:
    wukong, objects = unplaced(refusal=NO_NODE)
    pod = objects[2]
    pod.spec.node_selector = {"kubevirt.io/schedulable": "true"}  # type: ignore[attr-defined]
    message = condition(look(wukong, *objects, a_node()), "Placed")[2]
    assert "run KubeVirt on a node that fits otherwise" in message


def test_an_explanation_is_not_written_again_while_the_scheduler_says_the_same() -> None:
    wukong, objects = unplaced(refusal=NO_NODE)
    objects.append(a_node(memory="512Mi"))
    assert look(settled(wukong, *objects), *objects, now=NOW + 60) == DONE


def test_a_virtual_machine_that_got_its_node_is_told_so() -> None:
    wukong, objects = unplaced(refusal=NO_NODE)
    before = settled(wukong, *objects)
    vm = objects[0]
    assert isinstance(vm, VirtualMachine)
    placed = an_instance(vm, "node-a")
    outcome = look(before, vm, placed, a_launcher(placed, "node-a"), now=NOW + 5)
    assert condition(outcome, "Placed")[:2] == ("True", "Placed")
    assert "Placed" in notes(outcome)


def test_a_scheduler_that_nobody_runs_is_named_after_thirty_seconds() -> None:
    scheduling = {"schedulingPolicy": {"schedulerName": "gpu-scheduler"}}
    wukong, objects = unplaced(scheduling, created_at=format_time(NOW - 10))
    early = look(wukong, *objects)
    assert condition(early, "Placed")[1] == "Starting"
    assert early.requeue_after == pytest.approx(20)
    late = look(wukong, *objects, now=NOW + 20)
    status, reason, message = condition(late, "Placed")
    assert (status, reason) == ("False", "SchedulerMissing")
    assert '"gpu-scheduler"' in message


def test_a_migration_whose_target_has_no_node_is_told_though_the_machine_runs() -> None:
    wukong = a_wukong()
    (vm,) = applied(wukong, status=running(printableStatus="Migrating"))
    instance = an_instance(vm, "node-a")
    pods = a_launcher(instance, "node-a"), a_launcher(instance, refusal=NO_NODE, suffix="b")
    outcome = look(wukong, vm, instance, *pods, a_migration(instance), a_node("node-a"))
    (entry,) = status_of(outcome)["vms"]
    assert entry["reason"] == "MigrationTargetUnschedulable"
    assert NO_NODE in entry["message"]
    assert condition(outcome, "Placed")[:2] == ("True", "Placed")


def test_a_pod_that_kubevirt_cannot_make_is_told_in_its_words() -> None:
    wukong = a_wukong()
    (vm,) = applied(wukong, status={"printableStatus": "Starting"})
    synchronized = {"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": "no PriorityClass"}
    outcome = look(wukong, vm, an_instance(vm, conditions=[synchronized]))
    assert condition(outcome, "Ready")[1] == "FailedCreate"
    assert "no PriorityClass" in condition(outcome, "Ready")[2]


def test_news_of_virtual_machines_alone_is_told_once_a_second() -> None:
    wukong, controller = a_wukong(replicas=3), a_controller()
    vms = applied(wukong, status={"printableStatus": "Provisioning"})
    first = controller.reconcile(KEY, a_state(wukong, *vms), NOW)
    told = msgspec.structs.replace(wukong, status=msgspec.convert(status_of(first), type(wukong.status)))
    vms[0].status.printable_status = "Starting"
    early = controller.reconcile(KEY, a_state(told, *vms), NOW + 0.25)
    assert early == Outcome(requeue_after=0.75)
    assert status_of(controller.reconcile(KEY, a_state(told, *vms), NOW + 1))["vms"][0]["phase"] == "Starting"


def test_conditions_that_turn_to_and_fro_are_told_at_once_only_so_often() -> None:
    """As they do while two virt-controllers write the status of one machine over each other's."""
    wukong, controller, told_at = a_wukong(), a_controller(), list[float]()
    sides = [(vm, an_instance(vm, "node-0")) for vm in (*applied(wukong, status=running()), *applied(wukong))]

    def turn(now: float) -> None:
        nonlocal wukong
        side = sides[wukong.status.ready_replicas]  # the other one than was told last
        outcome = controller.reconcile(KEY, a_state(wukong, *side), now)
        if outcome.actions:
            told_at.append(now)
            wukong = msgspec.structs.replace(wukong, status=msgspec.convert(status_of(outcome), type(wukong.status)))

    for tenths in range(600):
        turn(NOW + tenths / 10)
    assert told_at[:MOST_TURNS] == [NOW + tenths / 10 for tenths in range(MOST_TURNS)]
    assert len(told_at) <= MOST_TURNS + 60 / STATUS_SECONDS
    turn(NOW + 80)
    turn(NOW + 80.1)
    turn(NOW - 80)  # the clock was set back
    assert told_at[-3:] == [NOW + 80, NOW + 80.1, NOW - 80]


def test_the_status_of_very_many_stays_small_and_tells_of_those_in_trouble() -> None:
    wukong = a_wukong(replicas=1000)
    built = [applied(wukong)[0].spec]
    vms: list[Object] = []
    for index in range(1000):
        meta = {
            "name": f"web-{index}",
            "namespace": "shop",
            "ownerReferences": [{"kind": "Wukong", "name": "web", "uid": "uid-web", "controller": True}],
        }
        vm_status = running() if index != 900 else {"printableStatus": "CrashLoopBackOff"}
        vms.append(a_vm({"metadata": meta, "spec": built[0]}, status=vm_status))
    state = a_state(wukong, *vms)
    controller = a_controller()
    outcome = controller.reconcile(KEY, state, NOW)
    status = status_of(outcome)
    assert (status["replicas"], status["readyReplicas"], status["reason"]) == (1000, 999, "CrashLoopBackOff")
    assert status["vms"][0]["name"] == "web-900"
    assert len(msgspec.json.encode(status)) < 64 << 10


# Priority ----------------------------------------------------------------------------------------------------------


URGENT = {"schedulingPolicy": {"priority": 100, "preemptionPolicy": "Never"}}


def a_class(value: int = 100, *, is_marked: bool = False) -> PriorityClass:
    annotations = {UNUSED: "2027-01-15T07:00:00Z"} if is_marked else {}
    meta = ObjectMeta(name="wukong-100-never", annotations=annotations)
    return PriorityClass(metadata=meta, value=value, preemption_policy="Never")


def test_a_virtual_machine_is_applied_only_once_its_priority_class_is_there() -> None:
    outcome = look(a_wukong(scheduling=URGENT))
    assert applies(outcome) == []
    assert condition(outcome, "Ready")[1] == "WaitingForPriorityClass"
    (patch,) = applies(look(a_wukong(scheduling=URGENT), a_class()))
    assert patch.patch.body["spec"]["template"]["spec"]["priorityClassName"] == "wukong-100-never"


def test_a_class_that_is_about_to_go_is_waited_for() -> None:
    outcome = look(a_wukong(scheduling=URGENT), a_class(is_marked=True))
    assert applies(outcome) == []


def test_a_class_of_another_value_is_not_used() -> None:
    outcome = look(a_wukong(scheduling=URGENT), a_class(value=5))
    assert applies(outcome) == []
    assert condition(outcome, "Ready")[1] == "PriorityClassTaken"


@pytest.mark.parametrize(
    ("priority", "limits", "expected"),
    [
        (2000, {"highest": 1000}, "expected at most 1000 here, got 2000"),
        (1, {"namespaces": ("ops", "infra")}, "only ops, infra may ask for more"),
        (1, {"namespaces": ("shop",)}, ""),
        (-5, {"namespaces": ("ops",)}, ""),
        (1000, {"highest": 1000}, ""),
    ],
)
def test_priorities_are_bounded_and_allowed_by_namespace(priority: int, limits: dict[str, Any], expected: str) -> None:
    outcome = look(a_wukong(scheduling={"schedulingPolicy": {"priority": priority}}), **limits)
    status, _, message = condition(outcome, "Accepted")
    assert status == ("False" if expected else "True")
    assert expected in message
    assert not expected or message.startswith("$.spec.scheduling.schedulingPolicy.priority: ")
