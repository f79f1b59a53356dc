"""What our scheduler does not model: such pods are told so and left alone."""

from __future__ import annotations

import msgspec

from builders import a_node, a_pod
from scheduler_world import OURS, World
from wukong.api.core import Pod, ResourceClaim
from wukong.controllers.scheduler.controller import Result, Scheduler


def with_device() -> Pod:
    pod = a_pod("web")
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, resource_claims=[ResourceClaim(name="gpu")])
    )


def test_a_pod_that_asks_for_it_is_told_so_and_nothing_else_is_done() -> None:
    results: list[Result] = []
    world = World(Scheduler([OURS], refuses_unmodelled=True, record_result=results.append))
    world.put(a_node("n1"), with_device(), a_pod("other"))
    assert world.settle().binds() == [("other", "n1")]
    (note,) = [note for note in world.notes() if note.reason == "NotModelled"]
    assert note.text.startswith(f"{OURS} leaves this pod alone: it has resource claims, and devices are not allocated")
    assert (note.key.name, note.is_warning) == ("web", True)
    assert world.message("web") == ""
    assert sorted(results) == ["not-modelled", "scheduled"]


def test_one_that_stands_for_kube_scheduler_refuses_nothing_of_it() -> None:
    world = World(Scheduler([OURS]))
    world.put(a_node("n1"), with_device())
    assert world.settle().binds() == [("web", "n1")]
