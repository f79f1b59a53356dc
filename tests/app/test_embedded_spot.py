"""The spot component in an embedded cluster: what is decided about two nodes at once fits together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import read_scenario

NOTICE_AT = 100.0
# Seeds with which the pod of one node was evicted, and the other node was decided about before that showed.
CLOSE_SEEDS = (12, 21, 75)


def a_stateful_set_on_spot_nodes(*, has_budget: bool) -> str:
    """One pod on each of three spot nodes, two of which get notice in the same moment."""
    spread = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    spot = {"matchExpressions": [{"key": "node.kubernetes.io/capacity", "operator": "In", "values": ["spot"]}]}
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [spread]},
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": spot}]},
    }
    template = {
        "metadata": {"labels": {"app": "db"}, "annotations": {"sim.novasphere.dev/ready-seconds": "20"}},
        "spec": {
            "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}],
            "affinity": affinity,
        },
    }
    selector = {"matchLabels": {"app": "db"}}
    manifests: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {"serviceName": "db", "replicas": 3, "selector": selector, "template": template},
        }
    ]
    if has_budget:
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "db"}}
        manifests.append({**budget, "spec": {"maxUnavailable": 1, "selector": selector}})
    notice = {"metadata": {"annotations": {"placement.novasphere.dev/notice": "2m"}}}
    names = ("spot-1", "spot-2")
    timeline: list[dict[str, Any]] = [
        {"at": f"{NOTICE_AT:.0f}s", "patch": {"kind": "Node", "name": name, "type": "merge", "patch": notice}}
        for name in names
    ]
    timeline += [{"at": "220s", "kill": name} for name in names]
    return json.dumps(
        {
            "components": ["spot"],
            "nodes": [
                {"namePrefix": "spot-", "count": 3, "spot": True, "capacity": {"cpu": 2}},
                {"namePrefix": "od-", "count": 2, "spot": False, "capacity": {"cpu": 4}},
            ],
            "manifests": manifests,
            "timeline": timeline,
            "until": "10m",
        }
    )


def list_evictions(text: str, seed: int) -> list[dict[str, Any]]:
    lines: list[str] = []
    story = play_scenario(read_scenario(text), seed, lines=lines.append)
    assert story.settled
    assert story.findings == []
    steps = (json.loads(line) for line in lines if '"Evict"' in line)
    return [step for step in steps if step["by"] == "spot-eviction"]


@pytest.mark.parametrize("seed", CLOSE_SEEDS)
def test_no_eviction_is_refused_by_a_budget_that_another_of_ours_has_just_used_up(seed: int) -> None:
    evictions = list_evictions(a_stateful_set_on_spot_nodes(has_budget=True), seed)
    assert [step.get("error") for step in evictions] == [None, None]


@pytest.mark.parametrize("seed", CLOSE_SEEDS)
def test_two_nodes_never_give_up_pods_of_one_stateful_set_at_the_same_time(seed: int) -> None:
    first, second = list_evictions(a_stateful_set_on_spot_nodes(has_budget=False), seed)
    assert second["at"] > first["at"] + 20  # the first one's replacement was ready by then


def a_workload_on_one_spot_node(*more: dict[str, Any], kind: str = "StatefulSet") -> str:
    """One pod, on the only spot node, which gets two minutes of notice; another node has room."""
    spot = {"matchExpressions": [{"key": "node.kubernetes.io/capacity", "operator": "In", "values": ["spot"]}]}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": spot}]}
    }
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container], "affinity": affinity}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            **({"serviceName": "db"} if kind == "StatefulSet" else {}),
        },
    }
    notice = {"metadata": {"annotations": {"placement.novasphere.dev/notice": "2m"}}}
    patch = {"kind": "Node", "name": "spot-1", "type": "merge", "patch": notice}
    return json.dumps(
        {
            "components": ["spot"],
            "nodes": [
                {"namePrefix": "spot-", "count": 1, "spot": True, "capacity": {"cpu": 2}},
                {"namePrefix": "od-", "count": 1, "spot": False, "capacity": {"cpu": 4}},
            ],
            "manifests": [*more, workload],
            "timeline": [{"at": f"{NOTICE_AT:.0f}s", "patch": patch}, {"at": "220s", "kill": "spot-1"}],
            "until": "20m",
        }
    )


def list_steps(text: str) -> list[dict[str, Any]]:
    """Of the component, without its changes of annotations and statuses."""
    lines: list[str] = []
    story = play_scenario(read_scenario(text), 3, lines=lines.append)
    assert story.findings == []
    steps = (json.loads(line) for line in lines)
    return [
        step for step in steps if step["by"] in ("spot-eviction", "spot-move") and step["action"]["type"] != "Patch"
    ]


BUDGET: dict[str, Any] = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db"},
    "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
}


@pytest.mark.parametrize(("choice", "acts"), [("Delete", ["DeletedAtDeadline", "Delete"]), ("Leave", ["GoesWithNode"])])
def test_a_policy_says_what_becomes_of_a_pod_that_its_budget_keeps(choice: str, acts: list[str]) -> None:
    policy = {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}, "onDeadline": choice},
    }
    steps = list_steps(a_workload_on_one_spot_node(BUDGET, policy))
    assert [step["action"].get("reason") or step["action"]["type"] for step in steps] == acts
    assert all(NOTICE_AT + 80 <= step["at"] < NOTICE_AT + 90 for step in steps)  # grace and 10 s before the deadline


def test_where_a_quota_leaves_no_room_for_a_replacement_the_pod_is_evicted() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    steps = list_steps(a_workload_on_one_spot_node(quota, kind="Deployment"))
    assert [step["action"].get("reason") or step["action"]["type"] for step in steps] == ["NotReplacedFirst", "Evict"]


@pytest.mark.parametrize("seed", [3, 12])
def test_the_history_of_notices_ends_with_how_each_pod_left_and_outlives_the_nodes(seed: int) -> None:
    lines: list[str] = []
    text = a_stateful_set_on_spot_nodes(has_budget=True)
    story = play_scenario(read_scenario(text), seed, lines=lines.append)
    assert story.settled
    steps = (json.loads(line) for line in lines)
    written = [step["action"] for step in steps if step["by"] == "spot-history" and "error" not in step]
    last = {action["key"]["name"]: action["patch"]["body"]["status"] for action in written if "patch" in action}
    assert sorted(name.partition(".")[0] for name in last) == ["spot-1", "spot-2"]
    for status in last.values():
        assert (status["phase"], status["outcome"], status["lost"], status["total"]) == ("Finished", "Gone", None, 1)
        (entry,) = status["pods"]
        assert (entry["way"], entry["workload"]) == ("evicted", "StatefulSet/db")
        assert 20 <= status["shortSeconds"] <= 25  # a replacement is ready after 20 s
    assert len(written) < 20


SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "db"},
    "spec": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "selector": {"app": "db"},
        "ports": [{"port": 80}],
    },
}


def test_load_balancers_lose_a_node_after_its_last_local_endpoint_and_get_it_back_if_it_stays() -> None:
    scenario = json.loads(a_workload_on_one_spot_node(SERVICE, kind="Deployment"))
    notice = {"metadata": {"annotations": {"placement.novasphere.dev/notice": None}}}
    patch = {"kind": "Node", "name": "spot-1", "type": "merge", "patch": notice}
    scenario["timeline"] = [scenario["timeline"][0], {"at": "180s", "patch": patch}]
    lines: list[str] = []
    story = play_scenario(read_scenario(json.dumps(scenario)), 3, lines=lines.append)
    assert story.findings == []
    steps = [step for step in map(json.loads, lines) if "error" not in step]  # a conflict with who else writes the Node
    labels = [step for step in steps if step["by"] == "spot-load-balancer" and step["action"]["type"] == "Patch"]
    values = [list(step["action"]["patch"]["body"]["metadata"]["labels"].values()) for step in labels]
    assert values == [["wukong"], [None]]
    surge, shrinking = [step["at"] for step in steps if step["action"]["type"] == "Scale"]
    assert surge < shrinking < labels[0]["at"] < 180 <= labels[1]["at"]
