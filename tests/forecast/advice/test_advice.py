"""Advice: what is proposed for which trap, in which order; and that it holds when it is tried afresh."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from forecast.situations import (
    a_budget,
    a_deployment,
    a_node,
    a_term,
    an_autoscaler,
    apart,
    node_affinity,
    some_nodes,
)
from plan_comparison.advice import follow, plan_change
from plan_comparison.changes import draw_change
from wukong.api.core import Pod
from wukong.app.many_seeds import ProcessExecutor
from wukong.app.snapshots import Baseline, load, make_baseline
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import PatchTarget, ScaleTarget, TimelineEntry
from wukong.forecast import PlannedChange, make_plan
from wukong.forecast.advice import Loss, find_advice
from wukong.forecast.fields import Advice
from wukong.ports import Document

pytestmark = pytest.mark.slow

SEEDS, OTHER_SEEDS = range(1, 3), range(11, 14)
INLINE = ProcessExecutor(1)
HASH = "pod-template-hash"
APART = apart(a_term())
ON_SSD: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def rest(*documents: Document) -> Baseline:
    return make_baseline(load(copy.deepcopy(list(documents))), Scenario())


def advise(cluster: list[Document], change: PlannedChange) -> list[Advice]:
    baseline = rest(*cluster)
    plan = make_plan(baseline, change, SEEDS, INLINE)
    assert not plan.verdict.is_safe, plan.verdict.text
    return find_advice(baseline, change, plan, SEEDS, INLINE)


def with_image(deployment: Document, image: str = "web:2") -> Document:
    changed = copy.deepcopy(deployment)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return changed


def applying(*documents: Document) -> PlannedChange:
    return PlannedChange(documents=documents)


def draining(node: str) -> PlannedChange:
    return PlannedChange(steps=(TimelineEntry(at="0s", drain=node),))


def old_node(name: str) -> Document:
    node = a_node(name)
    node["status"]["nodeInfo"] = {"kubeletVersion": "v1.30.4"}
    return node


# ---- which advice, and in which order


def test_a_rule_that_comes_with_a_rollout_gets_the_key_by_which_versions_are_told_apart() -> None:
    best, *others = advise([*some_nodes(3), a_deployment(3)], applying(a_deployment(3, APART)))
    assert (best.code, best.gives_up) == ("match-label-keys", "nothing")
    (patch,) = best.patches
    rules = patch["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert rules == apart(a_term(matchLabelKeys=[HASH]))["podAntiAffinity"]
    losses = [Loss[entry.gives_up.upper()] for entry in (best, *others)]
    assert losses == sorted(losses)
    assert len({entry.code for entry in (best, *others)}) == 3


def test_where_old_pods_have_the_rule_an_old_one_goes_first() -> None:
    deployment = a_deployment(3, APART)
    best = advise([*some_nodes(3), deployment], applying(with_image(deployment)))[0]
    assert (best.code, best.gives_up) == ("rollout-limits", "availability")
    assert best.patches[0]["spec"] == {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}
    assert "2 of 3" in best.text


def test_an_old_api_server_is_not_told_of_a_key_that_it_does_not_know() -> None:
    cluster = [*(old_node(f"n{number}") for number in range(3)), a_deployment(3)]
    codes = [entry.code for entry in advise(cluster, applying(a_deployment(3, APART)))]
    assert codes
    assert not any("match-label-keys" in code for code in codes)


@pytest.mark.parametrize(
    ("cluster", "change", "codes", "text"),
    [
        (  # more pods than nodes
            [*some_nodes(2), a_deployment(2)],
            applying(a_deployment(3, APART)),
            ["preferred-rule", "spread-instead", "more-nodes"],
            "Make the required podAntiAffinity by kubernetes.io/hostname of Deployment default/web preferred.",
        ),
        (  # no room: a node more
            [a_node("n1", cpu="1"), a_deployment(1, cpu="700m")],
            applying(a_deployment(2, cpu="700m")),
            ["more-nodes", "fewer-replicas"],
            "Add 1 node like n1.",
        ),
        (  # a budget that lets nobody go
            [*some_nodes(3), a_deployment(4), a_budget(maxUnavailable=0)],
            draining("n1"),
            ["other-budget"],
            "Set maxUnavailable: 1 in PodDisruptionBudget default/web.",
        ),
        (  # nodes that are kept for others
            [a_node("n1", cpu="1"), a_node("n2", taints=[GPU]), a_deployment(1, cpu="700m")],
            applying(a_deployment(2, cpu="700m")),
            ["pod-fixes", "more-nodes", "fewer-replicas"],
            "Tolerate the taint gpu=yes:NoSchedule, in the template of Deployment default/web.",
        ),
        (
            [
                a_node("n1", cpu="1", disk="ssd"),
                a_node("n2"),
                a_deployment(1, cpu="700m", nodeSelector={"disk": "ssd"}),
            ],
            applying(a_deployment(2, cpu="700m", **ON_SSD)),
            ["pod-fixes", "more-nodes", "fewer-replicas"],
            "Drop disk=ssd from nodeSelector, in the template of Deployment default/web.",
        ),
        (  # the size is an autoscaler's
            [*some_nodes(2), a_deployment(2), an_autoscaler(least=3)],
            applying(a_deployment(3, node_affinity([("disk", "In", ["ssd"])]))),
            ["pod-fixes"],
            "Drop the required nodeAffinity, in the template of Deployment default/web.",
        ),
    ],
)
def test_each_trap_has_its_advice(cluster: list[Document], change: PlannedChange, codes: list[str], text: str) -> None:
    advice = advise(cluster, change)
    assert ([entry.code for entry in advice], advice[0].title) == (codes, text)


def test_a_node_is_offered_that_takes_the_pod_though_smaller_ones_are_commoner() -> None:
    """Only the way to the new version is barred: a second pod of 6 cpu has no room on the one node of 8."""
    small = [a_node(f"s{number}{copy}", pool=str(number)) for number in range(4) for copy in "ab"]
    deployment = a_deployment(1, cpu="6")
    cluster = [*small, a_node("z", cpu="8"), deployment]
    titles = [entry.title for entry in advise(cluster, applying(with_image(deployment)))]
    assert "Add 1 node like z." in titles


def test_a_cordoned_node_is_offered_as_a_command() -> None:
    cordoned = {**a_node("n2"), "spec": {"unschedulable": True}}
    cluster = [a_node("n1", cpu="1"), cordoned, a_deployment(1, cpu="700m")]
    best = advise(cluster, applying(a_deployment(2, cpu="700m")))[0]
    assert (best.title, best.commands, best.patches) == ("Uncordon node n2.", ["kubectl uncordon n2"], [])


def test_a_single_pod_that_a_budget_holds_on_a_drained_node_gets_company_and_its_template_is_left_alone() -> None:
    cluster = [
        *some_nodes(2),
        a_deployment(1, nodeSelector={"kubernetes.io/os": "linux"}),
        a_budget(minAvailable="50%"),
    ]
    for node in cluster[:2]:
        node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    (pod,) = rest(*cluster).state.all(Pod)
    (advice,) = advise(cluster, draining(pod.spec.node_name))
    assert (advice.code, advice.patches[0]["spec"]) == ("more-replicas", {"replicas": 2})


def test_a_workload_that_a_step_changes_is_patched_as_the_cluster_has_it() -> None:
    deployment = a_deployment(3, APART)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
    step = TimelineEntry(at="0s", patch=PatchTarget(kind="Deployment", name="web", patch=image))
    best = advise([*some_nodes(3), deployment], PlannedChange(steps=(step,)))[0]
    assert best.patches[0]["spec"] == {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}
    scale = TimelineEntry(at="0s", scale=ScaleTarget(kind="Deployment", name="web", replicas=4))
    assert advise([*some_nodes(3), deployment], PlannedChange(steps=(scale,)))


def test_nothing_is_advised_where_nothing_is_wrong() -> None:
    deployment = a_deployment(3)
    baseline, change = rest(*some_nodes(3), deployment), applying(with_image(deployment))
    plan = make_plan(baseline, change, SEEDS, INLINE)
    assert find_advice(baseline, change, plan, SEEDS, INLINE) == []


# ---- that it holds


# Stuck ones, drawn by tests/plan_comparison: a drain against budget and rule, a rollout without a slot, more replicas
# than zones, a rule that bars the old version, and a StatefulSet.
STUCK = (2, 4, 13, 14, 25, 47)


@pytest.mark.slow
@pytest.mark.parametrize("seed", STUCK)
def test_every_advice_completes_when_it_is_followed_from_a_fresh_snapshot(seed: int) -> None:
    random_change = draw_change(seed)
    cluster = [*random_change.nodes, *random_change.before]
    advice = advise(cluster, plan_change(random_change))
    assert advice, random_change.text
    for entry in advice:
        plan = make_plan(rest(*cluster), plan_change(follow(random_change, entry)), OTHER_SEEDS, INLINE)
        assert plan.verdict.is_safe, (random_change.text, entry.title, plan.verdict)


def test_a_candidate_changes_nothing_that_it_is_made_from() -> None:
    deployment = a_deployment(3, APART)
    change = applying(with_image(deployment))
    text = msgspec.json.encode(change)
    advise([*some_nodes(3), deployment], change)
    assert msgspec.json.encode(change) == text
