"""Random scenarios for fidelity: the same by seed, of every sort, and how two stories are held against each other."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import msgspec
import pytest

from testbed.fidelity import compare
from testbed.fidelity.examples import move
from testbed.fidelity.mixed_scenarios import a_mixed_scenario
from testbed.fidelity.run import find_decided_spreads, is_bound_by_budget
from testbed.fidelity.scenarios import HOSTNAME, Json, a_scenario
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.format.fields import PatchTarget, TimelineEntry
from wukong.embedded.scenario.record.story import NodeCount, Story, WorkloadSummary


def test_a_seed_always_gives_the_same_scenario() -> None:
    assert a_scenario(7) == a_scenario(7)
    assert a_scenario(7) != a_scenario(8)
    assert a_scenario(7, own="x")["manifests"][0]["metadata"]["namespace"] == "x"


@pytest.mark.slow
def test_a_hundred_and_twenty_seeds_hold_enough_of_every_sort() -> None:
    found: Tally[str] = Tally()
    for seed in range(1, 121):
        scenario = read_scenario(msgspec.json.encode(a_scenario(seed)))
        story = play_scenario(scenario)
        found["complete" if story.settled else "stuck"] += 1
        found["bound"] += is_bound_by_budget(story)
        found[scenario.manifests[0]["kind"]] += 1
    assert found["complete"] >= 30
    assert found["stuck"] >= 30
    assert found["bound"] >= 20
    assert min(found["Deployment"], found["StatefulSet"]) >= 20


def list_sorts(scenario: Json) -> set[str]:
    """What a mixed scenario is made of."""
    text, timeline = str(scenario), scenario["timeline"]
    marks = {
        "follows": "podAffinity",
        "port": "hostPort",
        "preemption": "urgent",
        "spread over zones": "'maxSkew': 1, 'topologyKey': 'topology.kubernetes.io/zone'",
        "AlwaysAllow": "AlwaysAllow",
        "paused": "'paused': True",
    }
    sorts = {name for name, mark in marks.items() if mark in text}
    documents = [*scenario["manifests"], *(entry["apply"] for entry in timeline if "apply" in entry)]
    flat = [item for document in documents for item in (document if isinstance(document, list) else [document])]
    sorts |= {document["kind"] for document in flat}
    sorts |= {name for entry in timeline for name in entry if name != "at"}
    sorts |= {"to zero" for entry in timeline if entry.get("scale", {}).get("replicas") == 0}
    sorts |= {"back" for entry in timeline if "web:1" in str(entry.get("patch", ""))}
    sorts |= {"tainted" for entry in timeline if entry.get("patch", {}).get("kind") == "Node"}
    return sorts


def test_mixed_seeds_hold_every_sort_and_give_the_same_again() -> None:
    tally: Tally[str] = Tally()
    for seed in range(1, 201):
        scenario = a_mixed_scenario(seed)
        assert scenario == a_mixed_scenario(seed)
        read_scenario(msgspec.json.encode(scenario))
        tally.update(list_sorts(scenario))
    rare = {sort: tally[sort] for sort in SORTS if tally[sort] < 8}
    assert not rare, tally


SORTS = (
    *("Deployment", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget", "PriorityClass", "Node"),
    *("follows", "port", "preemption", "spread over zones", "AlwaysAllow", "paused", "to zero", "back", "tainted"),
    *("drain", "cordon", "uncordon", "scale", "patch", "apply"),
)


@pytest.mark.slow
def test_fifty_mixed_seeds_end_in_every_way() -> None:
    tally: Tally[str] = Tally()
    for seed in range(1, 51):
        story = play_scenario(read_scenario(msgspec.json.encode(a_mixed_scenario(seed))))
        assert not story.findings
        tally["complete" if story.settled else "stuck"] += 1
        tally["bound"] += is_bound_by_budget(story)
        tally["disrupted"] += any(summary.restarts for summary in story.workloads.values())
    assert min(tally["complete"], tally["stuck"], tally["disrupted"]) >= 12
    assert tally["bound"] >= 2


def a_story(pending: str = "", **fate: Any) -> Story:
    told = WorkloadSummary(kind="Deployment", **{"replicas": 3, "available": 3, **fate})
    return Story(
        settled=not pending,
        stuck=[f"a/web: pending: {pending}"] if pending else [],
        workloads={"a/web": told},
        nodes=NodeCount(),
        writes=0,
        virtual_seconds=0,
        digest="",
    )


WEB = ("a/web",)
NO_ROOM = "0/{} nodes are available: {}. no new claims to deallocate, preemption: 0/3 nodes are available."
APART = "{} node(s) didn't match pod anti-affinity rules"
ELSEWHERE = "{} node(s) didn't match Pod's node affinity/selector"


def find_differences(embedded: list[Story], real: Story, **options: Any) -> list[str]:
    return compare.find_closest(embedded, real, **options).differences


@pytest.mark.parametrize("field", ["available", "min_available", "max_pods", "restarts"])
def test_every_number_is_compared(field: str) -> None:
    first: dict[str, Any] = {field: 1}
    second: dict[str, Any] = {field: 2}
    same, other = a_story(**first), a_story(**second)
    assert find_differences([same], same, decided_spreads=WEB) == []
    assert len(find_differences([same], other, decided_spreads=WEB)) == 1
    assert find_differences([same, other], other, decided_spreads=WEB) == []  # drawn


def test_one_seed_must_be_like_the_real_story_in_everything() -> None:
    first, second = a_story(restarts=1, max_pods=3), a_story(restarts=2, max_pods=4)
    mixture = a_story(restarts=1, max_pods=4)
    verdict = compare.find_closest([first, second], mixture)
    assert verdict.differences == ["numbers: embedded (('a/web', 3, 3, 0, 3),), real (('a/web', 3, 3, 0, 4),)"]
    assert verdict.closest is first


def test_verdicts_are_compared() -> None:
    waits = a_story(NO_ROOM.format(3, APART.format(3)))
    assert find_differences([waits], a_story())


def test_nodes_of_others_are_left_out_of_the_reasons_and_nothing_else_is() -> None:
    ours = a_story(NO_ROOM.format(3, APART.format(3)))
    beside = a_story(NO_ROOM.format(9, f"{APART.format(3)}, {ELSEWHERE.format(6)}"))
    fewer = a_story(NO_ROOM.format(9, f"{APART.format(2)}, {ELSEWHERE.format(7)}"))
    another = a_story(NO_ROOM.format(9, f"3 Insufficient cpu, {ELSEWHERE.format(6)}"))
    assert find_differences([ours], beside) == []
    assert find_differences([ours], fewer)
    assert find_differences([ours], another)


def test_alone_on_a_cluster_messages_must_be_the_same_word_for_word() -> None:
    ours = a_story(NO_ROOM.format(3, APART.format(3)))
    beside = a_story(NO_ROOM.format(9, f"{APART.format(3)}, {ELSEWHERE.format(6)}"))
    assert find_differences([ours], ours, is_alone=True) == []
    assert find_differences([ours], beside, is_alone=True)
    assert find_differences([ours, beside], beside, is_alone=True) == []


def test_pods_per_node_are_compared_where_rules_decide_them() -> None:
    first, second = a_story(per_node={"n1": 3}), a_story(per_node={"n1": 2, "n2": 1})
    assert find_differences([first], second) == []
    assert find_differences([first], second, decided_spreads=WEB)
    assert find_differences([first, second], second, decided_spreads=WEB) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"own/web", "own/agent"}),
        ({"company": True}, {"own/agent"}),
        ({"company": True, "apart": True}, {"own/web", "own/agent"}),
        ({"updated": True}, {"own/agent"}),
        ({"updated": True, "apart": True}, {"own/web", "own/agent"}),
    ],
)
def test_where_pods_go_is_decided_by_rules_unless_somebody_else_comes_and_goes(
    changes: dict[str, bool], expected: set[str]
) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {"affinity": affinity} if changes.get("apart") else {}
    names = {"web": "Deployment", "agent": "DaemonSet", **({"cache": "StatefulSet"} if changes.get("company") else {})}
    manifests = [
        {"kind": kind, "metadata": {"name": name, "namespace": "own"}, "spec": {"template": {"spec": spec}}}
        for name, kind in names.items()
    ]
    patch = PatchTarget("Deployment", "web", "own", patch={"spec": {"template": {"spec": {}}}})
    timeline = [TimelineEntry("9s", patch=patch)] if changes.get("updated") else []
    decided = find_decided_spreads(Scenario(manifests=manifests, timeline=timeline))
    assert decided - {"own/cache"} == expected


def test_an_example_is_moved_whole() -> None:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "n1", "containers": []}}
    web = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": pod}}
    scenario = {
        "nodes": [{"namePrefix": "n", "count": 2}],
        "manifests": [web],
        "timeline": [{"at": "1m", "drain": "n1"}, {"at": "1h", "scale": {"kind": "Deployment", "name": "web"}}],
    }
    copy = move(scenario, "own")
    assert copy["nodes"][0]["namePrefix"] == "own-n"
    assert copy["manifests"][0]["spec"]["template"]["spec"]["nodeName"] == "own-n1"
    assert [(entry["at"], entry.get("drain")) for entry in copy["timeline"]] == [("12s", "own-n1"), ("37s", None)]
    assert copy["timeline"][1]["scale"]["namespace"] == "own"
    assert scenario["nodes"] == [{"namePrefix": "n", "count": 2}]


@pytest.mark.parametrize("prefix", ["sim.novasphere.dev", "testbed.wukong"])
def test_an_example_that_says_how_long_pods_take_to_start_keeps_to_it(prefix: str) -> None:
    annotations = {f"{prefix}/start-seconds": "2"}
    pod = {"kind": "Pod", "metadata": {"name": "web", "annotations": annotations}, "spec": {"containers": []}}
    copy = move({"manifests": [pod], "timeline": []}, "own")
    assert copy["manifests"][0]["metadata"]["annotations"] == annotations
