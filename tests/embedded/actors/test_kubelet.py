"""What a kubelet makes of a clock that was set back, and of what others write on its pods."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, list_pods, names_of
from wukong.actions import Patch
from wukong.api.kinds import DEPLOYMENTS, PODS
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.store.documents import condition_of
from wukong.embedded.store.kubevirt.names import LAUNCHER, LAUNCHER_LABEL
from wukong.embedded.world.objects import Pod
from wukong.embedded.world.world import World
from wukong.errors import Conflict
from wukong.ports import PatchBody
from wukong.state import Change

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


def test_pods_without_a_node_and_those_that_are_gone_concern_no_kubelet() -> None:
    world, key = a_ready_pod()
    find_keys, pod = kubelet_of(world).watches[0].keys, world.state.get(Pod, key)
    assert pod is not None
    unbound = replace(pod, spec=replace(pod.spec, node_name=""))
    assert list(find_keys(Change("MODIFIED", "Pod", key, unbound, pod), world.state)) == [key]
    assert list(find_keys(Change("ADDED", "Pod", key, None, unbound), world.state)) == []
    assert list(find_keys(Change("DELETED", "Pod", key, pod, None), world.state)) == []


def test_a_kubelet_forgets_pods_that_went_without_it() -> None:
    world, key = a_ready_pod()
    kubelet = kubelet_of(world)
    kubelet._running_since.update({f"gone-{number}": 0.0 for number in range(2000)})
    kubelet._running_since.pop(world.server.get(PODS, key)["metadata"]["uid"])
    kubelet.reconcile(key, world.state, world.clock.now())
    assert len(kubelet._running_since) == 1


def test_a_condition_that_somebody_keeps_changing_is_put_back_every_ten_seconds() -> None:
    world, key = a_ready_pod()
    not_ready = PatchBody("strategic", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    times = []
    for _ in range(300):
        world.server.patch(PODS, key, not_ready, "status")
        world.run(seconds=0.1)
        ready = condition_of(world.server.get(PODS, key), "Ready")
        if ready is not None and ready["status"] == "True":
            times.append(world.clock.now())
    assert 3 <= len(times) <= 4
    assert all(later - earlier >= 9.9 for earlier, later in itertools.pairwise(times))


def test_a_launcher_whose_end_is_written_by_others_is_not_taken_back() -> None:
    world = a_world(1)
    template = a_template()
    template["metadata"]["labels"] = {**template["metadata"]["labels"], LAUNCHER_LABEL: LAUNCHER}
    world.server.create(DEPLOYMENTS, a_workload(replicas=1, template=template), NAMESPACE)
    world.run(seconds=1.0)
    (pod,) = list_pods(world)
    key = Key(NAMESPACE, pod["metadata"]["name"])
    not_ready = PatchBody("strategic", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    for _ in range(2):  # the second time it waits before it puts it back
        world.server.patch(PODS, key, not_ready, "status")
        world.run(seconds=0.1)
    (action,) = Kubelets().reconcile(key, world.state, world.clock.now()).actions
    assert isinstance(action, Patch)
    world.server.patch(PODS, key, PatchBody("strategic", {"status": {"phase": "Succeeded"}}), "status")
    with pytest.raises(Conflict):
        world.server.patch(PODS, key, action.patch, "status")


def test_of_a_pod_that_ended_nothing_is_remembered() -> None:
    world, key = a_ready_pod()
    kubelet = kubelet_of(world)
    uid = world.server.get(PODS, key)["metadata"]["uid"]
    assert uid in kubelet._running_since
    world.server.delete(DEPLOYMENTS, Key(NAMESPACE, "web"))
    world.run(seconds=120.0)
    assert list_pods(world) == []
    assert not kubelet._running_since
    assert not kubelet._stopping_since


def test_a_pod_whose_annotations_cannot_be_read_fails_and_says_why_and_can_still_be_deleted() -> None:
    world, key = a_ready_pod()
    annotations = {"metadata": {"annotations": {"sim.novasphere.dev/start-seconds": "soon"}}}
    world.server.patch(PODS, key, PatchBody("merge", annotations))
    world.run(seconds=1.0)
    pod = world.server.get(PODS, key)
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "BadTestbedAnnotation")
    assert pod["status"]["message"].startswith(f"{key.name}: ")
    assert "start-seconds" in pod["status"]["message"]
    writes = world.server.database.version
    world.run(seconds=1.0)
    assert world.server.database.version == writes, "it has said so"
    world.server.delete(PODS, key)
    world.run(seconds=120.0)
    assert key.name not in names_of(list_pods(world))
