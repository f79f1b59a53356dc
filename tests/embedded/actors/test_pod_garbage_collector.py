"""Pods whose node is gone: deleted after 40 s, in the next of the rounds that come every 20 s."""

from __future__ import annotations

import pytest

from embedded.actors.actor_world import NAMESPACE, a_workload, a_world, list_pods
from wukong.api.kinds import NODES, REPLICA_SETS
from wukong.api.resources import Key

SEEDS = 40


def seconds_until_collected(seed: int) -> float:
    """How long after its node was deleted a pod is."""
    world = a_world(1, seed=seed)
    world.server.create(REPLICA_SETS, a_workload(replicas=1), NAMESPACE)
    world.run()
    (pod,) = list_pods(world)
    world.server.delete(NODES, Key("", "n0"))
    began = world.clock.now()
    while any(other["metadata"]["uid"] == pod["metadata"]["uid"] for other in list_pods(world)):
        assert world.clock.now() < began + 100
        world.run(seconds=0.5)
    return world.clock.now() - began


@pytest.mark.slow
def test_when_a_round_comes_is_drawn_and_rarely_the_one_after_deletes() -> None:
    waits = [seconds_until_collected(seed) for seed in range(SEEDS)]
    in_time = [seconds for seconds in waits if seconds <= 61]
    assert all(40 <= seconds <= 81 for seconds in waits)
    assert max(in_time) - min(in_time) > 10
    assert SEEDS * 0.8 < len(in_time) < SEEDS


def test_a_seed_keeps_its_rounds() -> None:
    assert seconds_until_collected(3) == seconds_until_collected(3)
