"""DaemonSets and PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import (
    BUDGETS,
    LABELS,
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    add_node,
    is_ready,
    list_pods,
    merge,
    names_of,
    status_of,
)
from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, PODS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.errors import TooManyRequests


def list_images(world: World) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in list_pods(world)]


def test_a_daemon_set_has_a_pod_on_every_node_and_on_new_ones() -> None:
    world = a_world(2)
    world.server.create(DAEMON_SETS, a_workload(replicas=None), NAMESPACE)
    world.run()
    add_node(world, "n9")
    world.run()
    assert sorted(pod["spec"]["nodeName"] for pod in list_pods(world)) == ["n0", "n1", "n9"]
    counts = status_of(world, DAEMON_SETS)
    assert (counts["desiredNumberScheduled"], counts["numberReady"], counts["numberAvailable"]) == (3, 3, 3)


def test_a_daemon_set_is_updated_one_node_at_a_time() -> None:
    world = a_world(3)
    world.server.create(DAEMON_SETS, a_workload(replicas=None), NAMESPACE)
    world.run()
    least = [3]
    world.listen(lambda _: least.append(sum(map(is_ready, list_pods(world)))))
    merge(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    assert list_images(world) == ["app:2"] * 3
    assert min(least) == 2


def create_budget(world: World, **spec: Any) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": LABELS}, **spec}}
    world.server.create(BUDGETS, body, NAMESPACE)
    world.run()


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 5, 2, 3),
        ({"minAvailable": "50%"}, 5, 3, 2),
        ({"maxUnavailable": 1}, 5, 4, 1),
        ({"maxUnavailable": "30%"}, 5, 3, 2),
        ({"minAvailable": 9}, 5, 9, 0),
    ],
)
def test_a_budget_counts_as_kubernetes_does(spec: Any, expected: int, desired: int, allowed: int) -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=5), NAMESPACE)
    create_budget(world, **spec)
    counts = status_of(world, BUDGETS)
    assert (counts["expectedPods"], counts["desiredHealthy"], counts["disruptionsAllowed"]) == (
        expected,
        desired,
        allowed,
    )
    assert counts["currentHealthy"] == 5
    assert counts["conditions"][0]["reason"] == ("SufficientPods" if allowed else "InsufficientPods")


def test_a_budget_is_counted_again_when_its_workload_is_scaled_and_not_for_other_news_of_it() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=3), NAMESPACE)
    create_budget(world, maxUnavailable=1)
    counted: list[Key] = []
    world.listen_to_decisions(lambda _, item, __: counted.append(item.key) if item.controller == "disruption" else None)
    merge(world, DEPLOYMENTS, "web", {"metadata": {"annotations": {"team": "shop"}}})
    world.run()
    assert counted == []
    merge(world, DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    world.run()
    assert counted
    assert status_of(world, BUDGETS)["desiredHealthy"] == 3


def test_an_eviction_is_charged_until_the_replacement_is_ready() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=3), NAMESPACE)
    create_budget(world, maxUnavailable=1)
    first, second, _ = names_of(list_pods(world))
    world.server.evict(Key(NAMESPACE, first))
    with pytest.raises(TooManyRequests):
        world.server.evict(Key(NAMESPACE, second))
    world.run()
    assert status_of(world, BUDGETS)["disruptionsAllowed"] == 1
    assert "disruptedPods" not in status_of(world, BUDGETS)
    world.server.evict(Key(NAMESPACE, second))


def test_a_budget_of_percent_over_bare_pods_cannot_be_counted() -> None:
    world = a_world()
    world.server.create(
        PODS,
        {"metadata": {"name": "bare"}, **a_template()} | {"metadata": {"name": "bare", "labels": LABELS}},
        NAMESPACE,
    )
    create_budget(world, maxUnavailable="50%")
    assert status_of(world, BUDGETS)["conditions"][0]["reason"] == "SyncFailed"
