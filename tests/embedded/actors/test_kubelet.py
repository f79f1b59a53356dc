"""What a kubelet makes of a clock that was set back: containers run on, whatever the time."""

from __future__ import annotations

import pytest

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, list_pods, names_of
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.world.world import World

SET_BACK_SECONDS = 60.0


def a_ready_pod(**annotations: str) -> tuple[World, Key]:
    world = a_world(1)
    template = a_template(**{f"sim.novasphere.dev/{name}": value for name, value in annotations.items()})
    world.server.create(DEPLOYMENTS, a_workload(replicas=1, template=template), NAMESPACE)
    world.run(seconds=1.0)
    return world, Key(NAMESPACE, names_of(list_pods(world))[0])


def kubelet_of(world: World) -> Kubelets:
    kubelet = world.processes[0].dispatch.controllers["kubelet"]
    assert isinstance(kubelet, Kubelets)
    return kubelet


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_running_pod_runs_on_when_the_clock_is_set_back(is_restarted: bool) -> None:
    world, key = a_ready_pod()
    kubelet = Kubelets() if is_restarted else kubelet_of(world)
    outcome = kubelet.reconcile(key, world.state, world.clock.now() - SET_BACK_SECONDS)
    assert outcome.actions == ()


def test_a_pod_goes_on_from_where_it_was_when_the_clock_is_set_back() -> None:
    world, key = a_ready_pod(**{"unready-after-seconds": "100"})
    kubelet, now = kubelet_of(world), world.clock.now() - SET_BACK_SECONDS
    outcome = kubelet.reconcile(key, world.state, now)
    assert outcome.actions == ()
    assert outcome.requeue_after == pytest.approx(100.0)
    assert kubelet.reconcile(key, world.state, now + 99.0).actions == ()
    assert len(kubelet.reconcile(key, world.state, now + 101.0).actions) == 1
