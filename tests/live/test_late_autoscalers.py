"""What a real API server says of the sizes that a HorizontalPodAutoscaler sets: by that the checker of Moves goes."""

from __future__ import annotations

import msgspec

from live.second_leader import second_controller_manager
from testbed.client import Client
from testbed.control_plane import ControlPlane
from wukong.api.apps import Deployment
from wukong.ports import FIELD_MANAGER

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


async def test_a_size_of_an_autoscaler_is_noted_as_its_own_and_nothing_says_what_it_has_heard_of(
    few_controllers: ControlPlane,
) -> None:
    """The API server counts no generation of autoscalers, and their controller writes no observedGeneration."""
    plane = few_controllers
    controller = second_controller_manager(plane, plane.kubeconfig, "horizontal-pod-autoscaler-controller")
    async with Client.of(plane.kubeconfig) as client:
        with controller:
            await create_workload(client)
            grown = await client.wait_until(f"{DEPLOYMENTS}/web", lambda found: found["spec"]["replicas"] == 3)
            autoscaler = await client.wait_until(f"{AUTOSCALERS}/web", lambda found: "lastScaleTime" in found["status"])
        (manager,) = msgspec.convert(grown, Deployment).size_managers
        assert manager.subresource == "scale"
        assert manager.name != FIELD_MANAGER
        assert "generation" not in autoscaler["metadata"]
        assert "observedGeneration" not in autoscaler["status"]
        await client.delete(f"{AUTOSCALERS}/web")
        await client.delete(f"{DEPLOYMENTS}/web")


async def create_workload(client: Client) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    bounds = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 6}
    await client.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": bounds})
