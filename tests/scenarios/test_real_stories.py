"""Stories that a real control plane (1.35.8) once told otherwise than the embedded cluster did: told alike since.

Where chance decides, the endings of the real one are among the first thirty seeds; where not, every seed agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario, Story, read_scenario

FOLDER = Path(__file__).parent / "real_stories"
SEEDS = range(30)
UNSCHEDULABLE = "node(s) were unschedulable"


def read(name: str) -> Scenario:
    return read_scenario((FOLDER / f"{name}.yaml").read_text("utf-8"))


def play_seeds(name: str, seeds: range = SEEDS) -> Iterator[Story]:
    scenario = read(name)
    return (play_scenario(scenario, seed) for seed in seeds)


def available(story: Story, name: str) -> int:
    return story.workloads[f"shop/{name}"].available


def stuck_in_affinity(story: Story) -> bool:
    refused = "web: pending: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod affinity rules"
    return not story.settled and available(story, "web") == 3 and any(refused in reason for reason in story.stuck)


ENDINGS: dict[str, list[Callable[[Story], bool]]] = {
    "follower-between-leaders": [lambda story: story.settled and available(story, "web") == 5, stuck_in_affinity],
    "update-meets-drain": [lambda story: available(story, "web") == 1, lambda story: available(story, "web") == 2],
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_real_ending_is_among_the_seeds(name: str) -> None:
    missing = list(ENDINGS[name])
    for story in play_seeds(name):
        missing = [is_shown for is_shown in missing if not is_shown(story)]
        if not missing:
            return
    pytest.fail(f"{len(missing)} of {len(ENDINGS[name])} endings are in none of {len(SEEDS)} seeds")


def test_a_daemon_without_toleration_is_driven_out_by_the_taint_manager() -> None:
    for story in play_seeds("daemon-driven-out", SEEDS[:4]):
        agent = story.workloads["shop/agent"]
        assert story.settled
        assert (agent.available, agent.restarts, agent.per_node.get("node-1", 0)) == (4, 1, 0)  # evicted, not deleted


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("waiting-for-one-of-three", f"1 {UNSCHEDULABLE}, 2 node(s) didn't match pod anti-affinity rules."),
        ("waiting-for-one-of-six", f"3 node(s) didn't match pod anti-affinity rules, 3 {UNSCHEDULABLE}."),
        ("waiting-for-a-port", f"2 node(s) didn't have free ports for the requested pod ports, 3 {UNSCHEDULABLE}."),
        ("waiting-beside-budgets", f"2 node(s) didn't match pod anti-affinity rules, 3 {UNSCHEDULABLE}."),
    ],
)
def test_the_message_of_a_pod_that_waits_counts_all_nodes_cordoned_since(name: str, message: str) -> None:
    for story in play_seeds(name, SEEDS[:2]):
        assert not story.settled
        (reason,) = [reason for reason in story.stuck if reason.startswith("shop/web: pending")]
        assert f"nodes are available: {message}" in reason
