"""Changes that wait for a restart: what is said of them, and with restartPolicy WhenSafe what is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from builders import a_node
from controllers.test_vm import KEY, a_controller, a_state, applied, condition, look, status_of
from vms import NOW, a_launcher, a_migration, a_wukong, an_instance, migratable, running
from wukong.actions import Create, Delete, Outcome
from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Affinity
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.meta import Object
from wukong.api.times import format_time
from wukong.api.vm import Wukong
from wukong.controllers.vm.pending_changes import without_additions
from wukong.ports import Document

REQUIRED = [{"type": "RestartRequired", "status": "True", "message": "a non-live-updatable field was changed"}]
SSD = {"nodeSelector": {"disk": "ssd"}}


class Machines:
    """The running machines of a Wukong: made by `before`, and then changed to what `after` says."""

    def __init__(self, before: Wukong, after: Wukong, *, vm_status: Document | None = None) -> None:
        self.wukong = after
        old = applied(before)
        self.vms = applied(after, status=vm_status or running())
        nodes = [f"node-{index}" for index in range(len(old))]
        self.instances = [an_instance(vm, node, conditions=migratable()) for vm, node in zip(old, nodes, strict=True)]
        self.pods = [a_launcher(instance, node) for instance, node in zip(self.instances, nodes, strict=True)]
        self.nodes = [a_node(node) for node in nodes]

    def objects(self, *others: Object) -> list[Object]:
        return [self.wukong, *self.vms, *self.instances, *self.pods, *self.nodes, *others]

    def look(self, *others: Object, now: float = NOW) -> Outcome:
        return look(*self.objects(*others), now=now)


def changed(policy: str = "WhenSafe", replicas: int = 2, **spec: Any) -> Machines:
    """Machines of a Wukong whose spec has changed to this."""
    before = a_wukong(replicas=replicas, restartPolicy=policy)
    after = a_wukong(replicas=replicas, restartPolicy=policy, generation=2, **spec)
    return Machines(before, after)


def needing_restart(policy: str = "WhenSafe", replicas: int = 2, **spec: Any) -> Machines:
    return Machines(
        a_wukong(replicas=replicas, restartPolicy=policy),
        a_wukong(replicas=replicas, restartPolicy=policy, generation=2, terminationGracePeriodSeconds=7, **spec),
        vm_status=running(conditions=REQUIRED),
    )


def restarted(outcome: Outcome) -> list[str]:
    return [
        action.key.name
        for action in outcome.actions
        if isinstance(action, Delete) and action.resource == VIRTUAL_MACHINE_INSTANCES
    ]


def migrated(outcome: Outcome) -> list[str]:
    return [
        action.body["spec"]["vmiName"]
        for action in outcome.actions
        if isinstance(action, Create) and action.resource == VIRTUAL_MACHINE_INSTANCE_MIGRATIONS
    ]


# What is said ------------------------------------------------------------------------------------------------------


def test_a_restart_that_kubevirt_asks_for_is_told_with_the_paths_and_what_to_do() -> None:
    outcome = needing_restart("Never").look()
    status, reason, message = condition(outcome, "RestartRequired")
    assert (status, reason) == ("True", "RestartRequired")
    assert "web-0 waits for a restart to take up spec.template.spec.terminationGracePeriodSeconds" in message
    assert "restartPolicy: WhenSafe" in message
    assert [vm["restartRequired"] for vm in status_of(outcome)["vms"]] == [True, True]
    assert (restarted(outcome), migrated(outcome)) == ([], [])


def test_labels_wait_for_a_restart_though_kubevirt_says_nothing() -> None:
    status, _, message = condition(changed("Never", labels={"app": "shop"}).look(), "RestartRequired")
    assert status == "True"
    assert "labels" in message


def test_rules_for_the_next_pod_need_no_restart_and_are_told() -> None:
    status, reason, message = condition(changed("Never", scheduling=SSD).look(), "RestartRequired")
    assert (status, reason) == ("False", "NextPod")
    assert "spec.template.spec.nodeSelector" in message


def test_what_kubevirt_adds_to_a_pod_is_no_change() -> None:
    machines = Machines(
        a_wukong(highAvailability={"antiAffinity": True}), a_wukong(highAvailability={"antiAffinity": True})
    )
    (pod,) = machines.pods
    pod.spec.node_selector = {"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
    added = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
                        ]
                    }
                ]
            }
        }
    }
    assert pod.spec.affinity is not None
    spec = msgspec.to_builtins(pod.spec.affinity) | added
    own = {"labelSelector": {"matchLabels": {"kubevirt.io/created-by": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    spec["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(own)
    pod.spec.affinity = msgspec.convert(spec, type(pod.spec.affinity))
    assert condition(machines.look(), "RestartRequired")[1] == "UpToDate"


NODE_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
HOST_MODEL = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
SSD_TERM = {"key": "disk", "operator": "In", "values": ["ssd"]}
BY_KUBEVIRT = {"labelSelector": {"matchLabels": {"kubevirt.io/created-by": "x"}}, "topologyKey": "zone"}
BY_OTHERS = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
BARE_TERM = {"topologyKey": "zone"}


def on_nodes(*expressions: Mapping[str, object]) -> dict[str, object]:
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    return {"nodeAffinity": {NODE_TERMS: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("affinity", "own"),
    [
        ({}, {}),
        (on_nodes(HOST_MODEL), {}),
        (on_nodes(SSD_TERM), on_nodes(SSD_TERM)),
        (on_nodes(HOST_MODEL, SSD_TERM), on_nodes(SSD_TERM)),
        ({"nodeAffinity": {}}, {}),
        ({"podAntiAffinity": {NODE_TERMS: [BY_KUBEVIRT]}}, {}),
        ({"podAntiAffinity": {NODE_TERMS: [BY_KUBEVIRT, BY_OTHERS]}}, {"podAntiAffinity": {NODE_TERMS: [BY_OTHERS]}}),
        ({"podAntiAffinity": {NODE_TERMS: [BARE_TERM]}}, {"podAntiAffinity": {NODE_TERMS: [BARE_TERM]}}),
        ({"podAffinity": {NODE_TERMS: [BY_OTHERS]}}, {"podAffinity": {NODE_TERMS: [BY_OTHERS]}}),
        ({"podAffinity": {}}, {}),
    ],
)
def test_rules_are_compared_without_what_kubevirt_adds_and_what_is_empty(
    affinity: dict[str, object], own: dict[str, object]
) -> None:
    assert without_additions(msgspec.convert(affinity, Affinity)) == msgspec.convert(own, Affinity)
    assert without_additions(None) == Affinity()


# What is done ------------------------------------------------------------------------------------------------------


def test_one_is_restarted_at_a_time() -> None:
    machines = needing_restart()
    outcome = machines.look()
    assert restarted(outcome) == ["web-0"]
    (delete,) = [action for action in outcome.actions if isinstance(action, Delete)]
    assert delete.uid == "vmi-web-0"
    assert "web-0 is restarted." in condition(outcome, "RestartRequired")[2]


def test_the_next_waits_until_the_others_are_ready() -> None:
    machines = needing_restart()
    machines.vms[0].status.ready = False
    machines.vms[0].status.conditions = []
    machines.instances[0] = an_instance(machines.vms[0])
    outcome = machines.look()
    assert restarted(outcome) == []
    assert "web-1 is next, once web-0 is ready." in condition(outcome, "RestartRequired")[2]


def test_one_that_is_itself_not_ready_goes_first() -> None:
    machines = needing_restart()
    machines.vms[1].status.ready = False
    assert restarted(machines.look()) == ["web-1"]


def test_a_machine_without_a_node_has_nothing_to_lose() -> None:
    machines = needing_restart()
    for index in (0, 1):
        machines.vms[index].status.ready = False
        machines.instances[index].status.node_name = ""
        machines.pods[index] = a_launcher(machines.instances[index], refusal="0/2 nodes are available.")
    assert restarted(machines.look()) == ["web-0"]


def test_a_machine_that_was_just_started_rests_first() -> None:
    machines = needing_restart(replicas=1)
    machines.instances[0].metadata.creation_timestamp = format_time(NOW - 20)
    outcome = machines.look()
    assert restarted(outcome) == []
    assert outcome.requeue_after == pytest.approx(100)


@pytest.mark.parametrize(("allowed", "expected"), [(0, []), (1, ["web-0"])])
def test_budgets_over_the_pods_are_respected(allowed: int, expected: list[str]) -> None:
    document = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"wukong.novasphere.dev/name": "web"}}, "minAvailable": 1},
        "status": {"disruptionsAllowed": allowed},
    }
    outcome = needing_restart().look(msgspec.convert(document, PodDisruptionBudget))
    assert restarted(outcome) == expected
    assert outcome.requeue_after == (None if expected else 10)


def test_a_budget_that_kubernetes_cannot_count_is_named_as_such() -> None:
    document = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"wukong.novasphere.dev/name": "web"}}, "maxUnavailable": 1},
    }
    outcome = needing_restart().look(msgspec.convert(document, PodDisruptionBudget))
    assert "minAvailable with a number only" in condition(outcome, "RestartRequired")[2]


@pytest.mark.parametrize("strategy", ["Manual", "Once", "Halted"])
def test_what_kubevirt_would_not_start_again_is_not_stopped(strategy: str) -> None:
    outcome = needing_restart(runStrategy=strategy).look()
    assert restarted(outcome) == []
    assert f"runStrategy is {strategy}" in condition(outcome, "RestartRequired")[2]


def test_a_machine_on_the_wrong_node_is_migrated_and_not_restarted() -> None:
    outcome = changed(scheduling=SSD).look()
    assert (migrated(outcome), restarted(outcome)) == (["web-0"], [])


def test_a_machine_whose_node_is_right_by_the_new_rules_stays() -> None:
    machines = changed(scheduling=SSD)
    machines.nodes = [a_node(node.metadata.name, labels={"disk": "ssd"}) for node in machines.nodes]
    outcome = machines.look()
    assert (migrated(outcome), restarted(outcome)) == ([], [])
    assert "nothing needs to move" in condition(outcome, "RestartRequired")[2]


def test_a_machine_that_cannot_migrate_is_restarted() -> None:
    machines = changed(scheduling=SSD)
    machines.instances[0].status.conditions[0].status = "False"
    assert restarted(machines.look()) == ["web-0"]


def test_while_one_migrates_nothing_else_moves() -> None:
    machines = changed(scheduling=SSD)
    migration = a_migration(machines.instances[0])
    assert migrated(machines.look(migration)) == []
    machines = changed(scheduling=SSD)
    assert migrated(machines.look(a_migration(machines.instances[1]))) == []


def test_a_migration_that_failed_is_not_repeated_until_something_changes() -> None:
    machines = changed(scheduling=SSD)
    (create,) = [action for action in machines.look().actions if isinstance(action, Create)]
    failed = a_migration(machines.instances[0], create.body["metadata"]["name"], "Failed")
    outcome = machines.look(failed)
    assert migrated(outcome) == []
    assert "ended as Failed" in condition(outcome, "RestartRequired")[2]
    machines.vms[0].metadata.generation += 1
    assert migrated(machines.look(failed)) == ["web-0"]


def test_a_look_repeated_before_its_own_act_shows_chooses_the_same() -> None:
    machines, controller = needing_restart(), a_controller()
    state = a_state(*machines.objects())
    assert restarted(controller.reconcile(KEY, state, NOW)) == restarted(controller.reconcile(KEY, state, NOW + 5))


def test_a_restart_waits_until_the_virtual_machine_itself_is_written() -> None:
    machines = needing_restart()
    machines.vms[1].spec["runStrategy"] = "Manual"
    outcome = machines.look()
    assert restarted(outcome) == []
