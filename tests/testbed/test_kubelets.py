"""Real scheduler, real controllers, hollow kubelets: what happens to pods and Nodes on the shared control plane."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from testbed.client import Client, Json
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes

SILENT = "sim.novasphere.dev/silent"


def a_pod(name: str = "web", *, spec: Json | None = None, **annotations: str) -> Json:
    """Annotations are written `stop_seconds="2"`."""
    ours = {f"sim.novasphere.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    containers = [{"name": "main", "image": "web:1"}]
    return {"metadata": {"name": name, "annotations": ours}, "spec": {"containers": containers, **(spec or {})}}


def a_deployment(replicas: int, image: str) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def has_condition(kind: str, status: str) -> Callable[[Json], bool]:
    def is_so(found: Json) -> bool:
        conditions: list[Any] = found.get("status", {}).get("conditions", [])
        return any(it["type"] == kind and it["status"] == status for it in conditions)

    return is_so


is_ready, is_not_ready = has_condition("Ready", "True"), has_condition("Ready", "False")


def is_rolled_out(deployment: Json) -> bool:
    wanted, status = deployment["spec"]["replicas"], deployment.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status["observedGeneration"] == deployment["metadata"]["generation"]


async def created_pod(client: Client, namespace: str, pod: Json) -> str:
    """The path of a new pod, once it is ready."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    path = f"{pods}/{pod['metadata']['name']}"
    await client.create(pods, pod)
    await client.wait_until(path, is_ready)
    return path


def annotation(key: str, text: str | None) -> Json:
    return {"metadata": {"annotations": {key: text}}}


async def test_a_pod_is_bound_by_the_scheduler_and_made_ready_by_its_kubelet(bed: Bed, namespace: str) -> None:
    async with bed.client() as client:
        pod = await client.get(await created_pod(client, namespace, a_pod()))
        node = await client.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"].startswith("10.")
    assert pod["status"]["hostIP"] in [it["address"] for it in node["status"]["addresses"]]
    assert pod["status"]["qosClass"] == "BestEffort"


async def test_admission_is_on_and_refuses_an_unknown_priority_class(bed: Bed, namespace: str) -> None:
    pod = a_pod()
    pod["spec"]["priorityClassName"] = "nobody-made-it"
    async with bed.client() as client:
        with pytest.raises(Exception, match="no PriorityClass with name nobody-made-it"):
            await client.create(f"/api/v1/namespaces/{namespace}/pods", pod)


async def test_a_deployment_rolls_out_and_rolls_over_to_the_next_image(bed: Bed, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    async with bed.client() as client:
        await client.create(deployments, a_deployment(4, "web:1"))
        await client.wait_until(f"{deployments}/web", is_rolled_out)
        await client.patch(f"{deployments}/web", a_deployment(4, "web:2"), "strategic")
        await client.wait_until(f"{deployments}/web", is_rolled_out)
        pods = (await client.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert [pod["spec"]["containers"][0]["image"] for pod in living] == ["web:2"] * 4


async def test_a_deleted_pod_stops_in_its_own_time(bed: Bed, namespace: str) -> None:
    async with bed.client() as client:
        path = await created_pod(client, namespace, a_pod(stop_seconds="1.5"))
        began = time.monotonic()
        await client.delete(path)
        stopping = await client.get(path)
        assert stopping["metadata"]["deletionGracePeriodSeconds"] == 30
        assert is_ready(stopping)
        await client.wait_until_gone(path)
    assert time.monotonic() - began >= 1.5


async def test_a_pod_that_stops_too_slowly_is_gone_when_its_grace_is_over(bed: Bed, namespace: str) -> None:
    async with bed.client() as client:
        path = await created_pod(client, namespace, a_pod(stop_seconds="600"))
        began = time.monotonic()
        await client.delete(path, grace_seconds=1)
        await client.wait_until_gone(path)
    assert time.monotonic() - began >= 1


async def test_readiness_follows_an_annotation_of_the_running_pod(bed: Bed, namespace: str) -> None:
    never_ready = "sim.novasphere.dev/never-ready"
    async with bed.client() as client:
        path = await created_pod(client, namespace, a_pod())
        await client.patch(path, annotation(never_ready, "true"))
        failing = await client.wait_until(path, is_not_ready)
        assert failing["status"]["phase"] == "Running"
        await client.patch(path, annotation(never_ready, None))
        await client.wait_until(path, is_ready)


async def test_a_job_is_done_when_its_pod_has_run(bed: Bed, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    pod = a_pod(run_seconds="0.2")
    pod["spec"]["restartPolicy"] = "Never"
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    async with bed.client() as client:
        await client.create(jobs, {"metadata": {"name": "once"}, "spec": {"template": template}})
        await client.wait_until(f"{jobs}/once", has_condition("Complete", "True"))


async def test_a_pod_whose_annotation_makes_no_sense_fails_and_says_why(bed: Bed, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with bed.client() as client:
        await client.create(pods, a_pod(pull_seconds="fast"))
        failed = await client.wait_until(f"{pods}/web", lambda pod: pod["status"]["phase"] == "Failed")
    assert 'sim.novasphere.dev/pull-seconds: expected seconds such as "2.5", got "fast"' in failed["status"]["message"]


async def test_a_node_of_ones_own_takes_only_what_fits(bed: Bed, namespace: str, hollow_nodes: HollowNodes) -> None:
    async with bed.client() as client:
        await hollow_nodes(1, capacity={"pods": "1"})
        await created_pod(client, namespace, a_pod("first", spec=on_reserved(namespace)))
        pods = f"/api/v1/namespaces/{namespace}/pods"
        await client.create(pods, a_pod("second", spec=on_reserved(namespace)))
        waiting = await client.wait_until(f"{pods}/second", has_condition("PodScheduled", "False"))
    assert "1 Too many pods" in waiting["status"]["conditions"][0]["message"]


async def test_a_node_with_the_former_label_is_run_and_its_pods_follow_the_former_annotations(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    async with bed.client() as client:
        (name,) = await hollow_nodes()
        former = {"sim.novasphere.dev/hollow": None, "testbed.wukong/hollow": "true"}
        await client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": former}})
        pod = await created_pod(client, namespace, a_pod(spec=on_reserved(namespace)))
        await client.patch(pod, annotation("testbed.wukong/never-ready", "true"))
        await client.wait_until(pod, is_not_ready)


@pytest.mark.slow(waits=52, real_time=True)
async def test_a_silent_node_turns_unknown_and_comes_back(bed: Bed, namespace: str, hollow_nodes: HollowNodes) -> None:
    """The real controllers with their real patience: 50 s without a lease, then Unknown and tainted."""
    async with bed.client() as client:
        (name,) = await hollow_nodes()
        node = f"/api/v1/nodes/{name}"
        pod = await created_pod(client, namespace, a_pod(spec=on_reserved(namespace)))
        await client.patch(node, annotation(SILENT, "true"))
        await client.wait_until(node, has_condition("Ready", "Unknown"), seconds=90)
        await client.wait_until(pod, is_not_ready)
        await client.wait_until(node, has_taint("node.kubernetes.io/unreachable"))
        await client.patch(node, annotation(SILENT, None))
        await client.wait_until(node, is_ready)
        await client.wait_until(pod, is_ready)


def has_taint(key: str) -> Callable[[Json], bool]:
    return lambda node: any(taint["key"] == key for taint in node["spec"].get("taints", ()))
