"""The gate: what takes a pod or a node away is known, protected pods stay, rates hold, and everything is counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from builders import a_node, a_pod
from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Scale
from wukong.api.apps import Deployment, WorkloadMeta, WorkloadSpec
from wukong.api.core import NEVER_MOVE, Pod, Toleration
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.kubevirt import VirtualMachineInstance
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.resources import Key, Resource
from wukong.ports import PatchBody, PatchType
from wukong.runtime.gate import (
    ALLOW,
    MIRROR_POD,
    Allow,
    Forbid,
    Gate,
    GateSettings,
    Hold,
    act_of,
    note_of,
)
from wukong.state import State

WEB, N1 = Key("default", "web"), Key("", "n1")
EVICT = Evict(WEB)
DRIVEN_OUT = {"key": "gone", "effect": "NoExecute"}


def a_state(*pods: Pod, taints: tuple[str, ...] = (), replicas: int | None = 3) -> State:
    state = State()
    state.replace("Node", [a_node("n1", taints=taints)])
    state.replace("Pod", pods or [a_pod("web", node="n1")])
    meta = WorkloadMeta(name="web", namespace="default")
    state.replace(
        "Deployment.apps", [Deployment(kind="Deployment", metadata=meta, spec=WorkloadSpec(replicas=replicas))]
    )
    return state


def on_node(body: Any, type_: PatchType = "merge", subresource: str = "") -> Patch:
    return Patch(NODES, N1, PatchBody(type_, body), subresource)


def with_annotation(name: str, value: str) -> Pod:
    pod = a_pod("web", node="n1")
    pod.metadata.annotations = {name: value}
    return pod


ACTS: list[tuple[Action, str | None]] = [
    (EVICT, "evict"),
    (Delete(PODS, WEB), "delete-pod"),
    (Delete(NODES, N1), "delete-node"),
    (Delete(VIRTUAL_MACHINES, WEB), "delete-vm"),
    (Delete(VIRTUAL_MACHINE_INSTANCES, WEB), "delete-vm"),
    (Delete(DEPLOYMENTS, WEB), None),
    (on_node({"spec": {"unschedulable": True}}), "cordon"),
    (on_node({"spec": {"unschedulable": None}}), None),
    (on_node({"spec": {"unschedulable": True}}, "strategic"), "cordon"),
    (on_node([{"op": "add", "path": "/spec/unschedulable", "value": True}], "json"), "cordon"),
    (on_node([{"op": "remove", "path": "/spec/unschedulable"}], "json"), None),
    (on_node([{"op": "replace", "path": "/spec", "value": {"unschedulable": True}}], "json"), "cordon"),
    (on_node({"spec": {"unschedulable": True, "taints": [DRIVEN_OUT]}}), "taint"),
    (on_node({"spec": {"taints": [DRIVEN_OUT]}}), "taint"),
    (on_node({"spec": {"taints": [{"key": "held", "effect": "NoSchedule"}]}}), None),
    (on_node({"spec": {"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]}}), None),
    (on_node({"spec": {"taints": None}}), None),
    (on_node([{"op": "add", "path": "/spec/taints/-", "value": DRIVEN_OUT}], "json"), "taint"),
    (on_node({"metadata": {"labels": {"a": "b"}}}), None),
    (on_node({"spec": {"unschedulable": True}}, subresource="status"), None),
    (Scale(DEPLOYMENTS, WEB, 2), "scale-down"),
    (Scale(DEPLOYMENTS, WEB, 3), None),
    (Scale(DEPLOYMENTS, Key("default", "not mirrored"), 100), "scale-down"),
    (Patch(PODS, WEB, PatchBody("merge", {"spec": {"unschedulable": True}})), None),
    (Bind(WEB, "n1"), None),
    (Create(PODS, {}), None),
    (Note(PODS, WEB, "Told", "told"), None),
]


@pytest.mark.parametrize(("action", "act"), ACTS)
def test_what_takes_a_pod_or_a_node_away_is_known(action: Action, act: str | None) -> None:
    state = a_state(taints=("held:NoSchedule",))
    assert act_of(action, state) == act
    assert Gate().check(action, state, 0.0) == ALLOW


def a_mark(condition: str = "DisruptionTarget", status: str = "True") -> Patch:
    body = {"status": {"conditions": [{"type": condition, "status": status}]}}
    return Patch(PODS, WEB, PatchBody("strategic", body), subresource="status")


def test_a_pod_that_may_not_be_deleted_is_not_marked_for_it_and_a_mark_takes_nothing_of_a_rate() -> None:
    counts: list[tuple[str, str]] = []
    gate = Gate(GateSettings(pod_deletions_per_minute=1), count=lambda act, result: counts.append((act, result)))
    state, protected = a_state(), a_state(with_annotation(NEVER_MOVE, "true"))
    assert [gate.check(a_mark(), state, 0.0) for _ in range(3)] == [ALLOW] * 3
    assert gate.check(Delete(PODS, WEB), state, 0.0) == ALLOW
    assert gate.check(a_mark(), protected, 0.0) == Forbid(f"it has the annotation {NEVER_MOVE}")
    assert counts == [("delete-pod", "allowed"), ("delete-pod", "forbidden")]
    assert Gate(GateSettings(mode="Observe")).check(a_mark(), state, 0.0) == Forbid("the gate only observes")


@pytest.mark.parametrize(
    "action", [a_mark(status="False"), a_mark("Ready"), Patch(PODS, WEB, PatchBody("json", []), subresource="status")]
)
def test_what_else_is_said_of_a_pod_is_not_asked_about(action: Patch) -> None:
    assert Gate().check(action, a_state(with_annotation(NEVER_MOVE, "true")), 0.0) == ALLOW


def test_a_workload_that_does_not_say_has_one_replica() -> None:
    state = a_state(replicas=None)
    assert act_of(Scale(DEPLOYMENTS, WEB, 0), state) == "scale-down"
    assert act_of(Scale(DEPLOYMENTS, WEB, 1), state) is None


def owned_by_its_node() -> Pod:
    pod = a_pod("web", node="n1")
    pod.metadata.owner_references = [OwnerReference(name="n1", kind="Node", controller=True)]
    return pod


@pytest.mark.parametrize("pod", [with_annotation(MIRROR_POD, "hash"), owned_by_its_node()])
def test_a_static_pod_stays_and_its_node_may_go(pod: Pod) -> None:
    gate, state = Gate(), a_state(pod)
    assert gate.check(EVICT, state, 0.0) == Forbid("it is a static pod")
    assert gate.check(Delete(PODS, WEB), state, 0.0) == Forbid("it is a static pod")
    assert gate.check(Delete(NODES, N1), state, 0.0) == ALLOW


def test_a_pod_that_says_so_stays_and_keeps_its_node() -> None:
    gate, state = Gate(), a_state(with_annotation(NEVER_MOVE, "true"))
    reason = f"it has the annotation {NEVER_MOVE}"
    assert gate.check(EVICT, state, 0.0) == Forbid(reason)
    assert gate.check(Delete(NODES, N1), state, 0.0) == Forbid(f"pod default/web is there: {reason}")
    assert isinstance(gate.check(on_node({"spec": {"taints": [DRIVEN_OUT]}}), state, 0.0), Forbid)
    assert gate.check(on_node({"spec": {"unschedulable": True}}), state, 0.0) == ALLOW
    assert Gate().check(EVICT, a_state(with_annotation(NEVER_MOVE, "false")), 0.0) == ALLOW


@pytest.mark.parametrize("resource", [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES])
def test_a_virtual_machine_in_a_pod_that_says_so_stays(resource: Resource) -> None:
    pod = with_annotation(NEVER_MOVE, "true")
    pod.metadata.owner_references = [OwnerReference(kind="VirtualMachineInstance", name="web", uid="i")]
    state = a_state(pod)
    delete = Delete(resource, WEB)
    assert Gate().check(delete, state, 0.0) == ALLOW, "nothing says that this is the machine's pod"
    meta = ObjectMeta(name="web", namespace="default", uid="i")
    state.apply("ADDED", VirtualMachineInstance(metadata=meta))
    assert Gate().check(delete, state, 0.0) == Forbid(f"it has the annotation {NEVER_MOVE}")
    assert isinstance(Gate(GateSettings(never_move_namespaces=("default",))).check(delete, State(), 0.0), Forbid)


def test_a_taint_that_a_protected_pod_tolerates_is_allowed() -> None:
    pod = with_annotation(NEVER_MOVE, "true")
    pod.spec.tolerations = [Toleration(key="gone", operator="Exists")]
    assert Gate().check(on_node({"spec": {"taints": [DRIVEN_OUT]}}), a_state(pod), 0.0) == ALLOW


def test_a_cordon_does_not_hide_the_taint_beside_it() -> None:
    state = a_state(with_annotation(NEVER_MOVE, "true"))
    verdict = Gate().check(on_node({"spec": {"unschedulable": True, "taints": [DRIVEN_OUT]}}), state, 0.0)
    assert isinstance(verdict, Forbid)
    assert "pod default/web is there" in verdict.reason


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        ([Toleration(key="gone", operator="Exists", toleration_seconds=60)], False),
        ([Toleration(key="gone", operator="Exists", toleration_seconds=60), Toleration(operator="Exists")], False),
        ([Toleration(operator="Exists"), Toleration(key="gone", operator="Exists", toleration_seconds=60)], True),
    ],
)
def test_a_taint_tolerated_for_a_while_drives_out_in_the_end(tolerations: list[Toleration], stays: bool) -> None:
    """Of several tolerations the first that matches counts, as in the taint-eviction-controller."""
    pod = with_annotation(NEVER_MOVE, "true")
    pod.spec.tolerations = tolerations
    verdict = Gate().check(on_node({"spec": {"taints": [DRIVEN_OUT]}}), a_state(pod), 0.0)
    assert isinstance(verdict, Allow if stays else Forbid)


def test_namespaces_can_be_named_and_hold_for_pods_that_the_mirror_does_not_show() -> None:
    gate = Gate(GateSettings(never_move_namespaces=("default",)))
    for action in (EVICT, Evict(Key("default", "unseen")), Scale(DEPLOYMENTS, WEB, 0), Delete(NODES, N1)):
        assert isinstance(gate.check(action, a_state(), 0.0), Forbid)
    assert gate.check(Evict(Key("shop", "web")), a_state(), 0.0) == ALLOW


def test_more_than_the_rate_are_held_until_some_have_come_back() -> None:
    gate, state = Gate(GateSettings(evictions_per_minute=6)), a_state()
    first = [gate.check(EVICT, state, 1000.0) for _ in range(8)]
    assert first == [ALLOW] * 6 + [Hold("more than 6 a minute", 10.0), Hold("more than 6 a minute", 10.0, False)]
    assert gate.check(Delete(PODS, WEB), state, 1000.0) == ALLOW  # another act
    assert isinstance(gate.check(EVICT, state, 1009.0), Hold)
    assert gate.check(EVICT, state, 1010.0) == ALLOW
    assert gate.check(EVICT, state, 1010.0) == Hold("more than 6 a minute", 10.0)
    assert isinstance(gate.check(EVICT, state, 0.0), Hold)  # the clock was set back
    assert gate.check(EVICT, state, 10.0) == ALLOW


def test_cordons_and_taints_share_a_rate() -> None:
    gate, state = Gate(GateSettings(cordons_per_minute=1)), a_state()
    assert isinstance(gate.check(on_node({"spec": {"unschedulable": True}}), state, 0.0), Allow)
    assert isinstance(gate.check(on_node({"spec": {"taints": [DRIVEN_OUT]}}), state, 0.0), Hold)


def test_what_is_forbidden_is_news_once() -> None:
    gate, state = Gate(GateSettings(mode="Observe")), a_state()
    assert [gate.check(EVICT, state, 0.0) for _ in range(2)] == [
        Forbid("the gate only observes"),
        Forbid("the gate only observes", is_news=False),
    ]
    assert gate.check(Bind(WEB, "n1"), state, 0.0) == ALLOW


@pytest.mark.parametrize(
    ("settings", "is_dry_run", "result"),
    [
        (GateSettings(), False, "allowed"),
        (GateSettings(), True, "dry-run"),
        (GateSettings(mode="Observe"), False, "observed"),
        (GateSettings(never_move_namespaces=("default",)), False, "forbidden"),
    ],
)
def test_every_answer_is_counted_by_act_and_result(settings: GateSettings, is_dry_run: bool, result: str) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    gate = Gate(settings, is_dry_run=is_dry_run, count=lambda act, said: counted.update([(act, said)]))
    gate.check(EVICT, a_state(), 0.0)
    gate.check(Bind(WEB, "n1"), a_state(), 0.0)
    assert counted == {("evict", result): 1}


def test_the_event_names_the_act_and_why_not() -> None:
    told = note_of(EVICT, Forbid("it is a static pod"))
    assert (told.about, told.key, told.reason) == (PODS, WEB, "ActForbidden")
    assert told.text == "Evict: not done: it is a static pod"
    assert told.is_warning
    assert note_of(EVICT, Hold("more than 6 a minute", 10.0)).reason == "ActHeld"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_protected_pod_that_has_ended_or_is_static_does_not_keep_its_node(phase: str) -> None:
    ended, static = with_annotation(NEVER_MOVE, "true"), with_annotation(NEVER_MOVE, "true")
    ended.status.phase = phase
    static.metadata.annotations[MIRROR_POD] = "hash"
    for pod in (ended, static):
        assert Gate().check(Delete(NODES, N1), a_state(pod), 0.0) == ALLOW


def test_a_fork_goes_on_from_where_the_gate_is_and_changes_nothing_there() -> None:
    gate, state = Gate(GateSettings(evictions_per_minute=2, never_move_namespaces=("kept",))), a_state()
    protected = Evict(Key("kept", "web"))
    gate.check(protected, state, 0.0)
    for _ in range(3):
        gate.check(EVICT, state, 0.0)
    fork = gate.fork()
    assert fork.check(EVICT, state, 0.0) == Hold("more than 2 a minute", 30.0, is_news=False)
    assert isinstance(fork.check(protected, state, 0.0), Forbid)
    assert fork.check(protected, state, 0.0) == gate.check(protected, state, 0.0)
    assert fork.check(EVICT, state, 60.0) == ALLOW
    assert fork.check(EVICT, state, 60.0) == ALLOW
    assert gate.check(EVICT, state, 30.0) == ALLOW, "it has its own rate"
    other = Evict(Key("kept", "other"))
    assert fork.check(other, state, 0.0) == Forbid("namespace kept is among those never touched")
    assert gate.check(other, state, 0.0) == Forbid("namespace kept is among those never touched")


def test_of_what_was_said_only_the_latest_is_remembered() -> None:
    gate, state = Gate(GateSettings(never_move_namespaces=("kept",))), a_state()

    def is_news(number: int) -> bool:
        verdict = gate.check(Evict(Key("kept", f"web-{number}")), state, 0.0)
        assert isinstance(verdict, Forbid)
        return verdict.is_news

    assert all(is_news(number) for number in range(4097))
    assert not is_news(4096)
    assert not is_news(1)
    assert is_news(0)


def test_as_a_rule_the_rates_are_generous() -> None:
    settings = GateSettings()
    assert (settings.evictions_per_minute, settings.pod_deletions_per_minute) == (6000, 6000)
    assert (settings.node_deletions_per_minute, settings.cordons_per_minute) == (600, 600)
    assert settings.scale_downs_per_minute == 600


def test_a_hold_is_never_shorter_than_a_second() -> None:
    gate, state = Gate(GateSettings(evictions_per_minute=600)), a_state()
    holds = [gate.check(EVICT, state, 1000.0) for _ in range(601)]
    assert holds[-1] == Hold("more than 600 a minute", 1.0)
