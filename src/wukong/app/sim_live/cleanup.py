"""Takes back what a run did to a real cluster: objects, pods, namespaces, nodes, cordons. However the run ended.

Called by player.py while the mirror still follows the cluster, so nothing is polled: what shall go is waited for.
"""

from __future__ import annotations

from wukong.actions import Action, Delete
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, NODES, PODS
from wukong.api.resources import key_of
from wukong.app.sim_live.plan import ObjectName, Plan, describe_name
from wukong.app.sim_live.real_cluster import RealCluster
from wukong.embedded.scenario.play.steps import uncordon
from wukong.errors import ClusterError

REMOVAL_SECONDS = 60.0  # for pods with the usual grace of 30 s


async def clean_up(real: RealCluster, plan: Plan) -> list[str]:
    """Remove everything that the run created, and uncordon its nodes. Returns what could not be removed, and why."""
    problems: list[str] = []
    for name in sorted(real.cordoned_nodes - plan.cordoned_nodes):
        if not plan.makes_nodes:
            problems += await _try(real, uncordon(name))
    last_kinds = (NAMESPACES, NODES)
    for resource, key in reversed([entry for entry in real.created if entry[0] not in last_kinds]):
        problems += await _try(real, Delete(resource, key, propagation="Background"))
    await real.wait_until(lambda: not _pods_being_stopped(real, plan), REMOVAL_SECONDS)
    for pod in _pods_of_run(real, plan):  # nobody ends these: their node is gone, silent or slow
        problems += await _try(real, Delete(PODS, key_of(pod), grace_seconds=0))
    for kind in last_kinds:
        for resource, key in [entry for entry in real.created if entry[0] == kind]:
            problems += await _try(real, Delete(resource, key))
    removed = {(resource.group_kind, key) for resource, key in real.created if resource in last_kinds}
    await real.wait_until(lambda: not _still_present(real, removed), REMOVAL_SECONDS)
    return [*problems, *(f"{describe_name(name)} is still there" for name in sorted(_still_present(real, removed)))]


def _still_present(real: RealCluster, names: set[ObjectName]) -> set[ObjectName]:
    return {(group_kind, key) for group_kind, key in names if key in real.state.objects.get(group_kind, {})}


def _pods_of_run(real: RealCluster, plan: Plan) -> list[Pod]:
    """Those of the workloads that the run created, and all in the namespaces it created."""
    pods = real.state.all(Pod)
    return [pod for pod in pods if pod.metadata.namespace in plan.new_namespaces or real.recorder.is_about(pod)]


def _pods_being_stopped(real: RealCluster, plan: Plan) -> list[Pod]:
    """Pods of the run whose kubelet can end them."""
    return [pod for pod in _pods_of_run(real, plan) if real.has_kubelet(pod)]


async def _try(real: RealCluster, action: Action) -> list[str]:
    try:
        await real.performer.perform(action, real.clock.now())
    except ClusterError as error:
        return [str(error)]
    return []
