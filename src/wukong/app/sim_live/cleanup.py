"""Takes back what a run did to a real cluster: objects, pods, namespaces, nodes, cordons. However the run ended.

Called by player.py while its mirror still follows the cluster, so nothing is polled: what shall go is waited for.
"""

from __future__ import annotations

from wukong.actions import Action, Delete
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, NODES, PODS
from wukong.api.resources import Key
from wukong.app.sim_live.plan import Plan
from wukong.app.sim_live.stage import Stage
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.embedded.scenario.play import steps
from wukong.errors import ClusterError

LEAVING_SECONDS = 60.0  # for pods with the usual grace of 30 s


async def clean(stage: Stage, plan: Plan) -> list[str]:
    """Everything the run made is removed; gives what could not be."""
    left: list[str] = []
    for name in sorted(stage.cordoned - plan.cordoned):
        if not plan.makes_nodes:
            left += await _attempt(stage, *steps.actions(TimelineEntry(at="0s", uncordon=name), frozenset()))
    apart = (NAMESPACES, NODES)
    for resource, key in reversed([made for made in stage.made if made[0] not in apart]):
        left += await _attempt(stage, Delete(resource, key, propagation="Background"))
    await stage.until(lambda: not _staying(stage, plan), LEAVING_SECONDS)
    for key in _pods(stage, plan):  # nobody lets these go: their node is gone, silent or slow
        left += await _attempt(stage, Delete(PODS, key, grace_seconds=0))
    for kind in apart:
        for resource, key in [made for made in stage.made if made[0] == kind]:
            left += await _attempt(stage, Delete(resource, key))
    made = {(resource.group_kind, key) for resource, key in stage.made if resource in apart}
    await stage.until(lambda: not _there(stage, made), LEAVING_SECONDS)
    return [*left, *(f"{kind} {key} is still there" for kind, key in sorted(_there(stage, made)))]


def _there(stage: Stage, made: set[tuple[str, Key]]) -> set[tuple[str, Key]]:
    return {(kind, key) for kind, key in made if key in stage.state.objects.get(kind, {})}


def _pods(stage: Stage, plan: Plan) -> list[Key]:
    """Those of the workloads that the run made, and all in the namespaces it made."""
    found = stage.state.all(Pod)
    ours = [it for it in found if it.metadata.namespace in plan.new_namespaces or stage.recorder.is_about(it)]
    return [Key(pod.metadata.namespace, pod.metadata.name) for pod in ours]


def _staying(stage: Stage, plan: Plan) -> list[Key]:
    """Pods whose kubelet can let them go."""
    found = [stage.state.get(Pod, key) for key in _pods(stage, plan)]
    return [Key(pod.metadata.namespace, pod.metadata.name) for pod in found if pod is not None and stage.is_kept(pod)]


async def _attempt(stage: Stage, *actions: Action) -> list[str]:
    try:
        for action in actions:
            await stage.performer.perform(action, stage.clock.now())
    except ClusterError as error:
        return [str(error)]
    return []
