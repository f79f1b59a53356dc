"""The node lifecycle controller: nodes that fall silent, their taints, and the readiness of their pods.

    heartbeats ─► no taint
    silent ≥ 50 s ─► Ready Unknown, pods NotReady, NoSchedule ─► NoExecute (0.1 node/s per zone)

Leases are not renewed here: a node sends heartbeats until its annotation `sim.novasphere.dev/silent` says otherwise,
and the last one was up to ten seconds before that, by chance. The monitor looks every five seconds. Which taints a node
should have is in taints.py; how fast the nodes of a zone are tainted, and when not at all, is in zones.py. Pods are
deleted by taint_eviction/.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from wukong.actions import DONE, Action, Outcome, Patch
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note_about, note_about_pod
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.actors.node_lifecycle import taints, zones
from wukong.embedded.actors.node_lifecycle.zones import ZoneIndex
from wukong.embedded.actors.watch_keys import has_same_node
from wukong.embedded.store.documents import condition_of, format_time, value_at
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.engine.layered_dict import LayeredDict
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch, each_side_unless

GRACE, HEARTBEAT, MONITOR = 50.0, 10.0, 5.0


@each_side_unless(has_same_node)
def _key_of_unready_node(pod: Object, state: State) -> Iterable[Key]:
    """The key of the pod's node if that is not ready: then the pod must not be ready, either."""
    assert isinstance(pod, Pod)
    name, unready = pod.spec.node_name, state.index_of(ZoneIndex).unready
    is_unready = bool(unready) and any(name in names for names in unready.values())
    return (Key("", name),) if is_unready else ()


class NodeLifecycle:
    name = "nodelifecycle"

    def __init__(self, chance: Chance | None = None) -> None:
        self.chance = chance or Chance()
        self._last_heartbeats: dict[str, float] = {}  # silent node → its last heartbeat
        self._last_tainted: dict[str, float] = {}  # zone → when the last of its nodes was tainted NoExecute
        self._was_ready: LayeredDict[str, bool] = LayeredDict()
        self.watches = (Watch(NODES, self._find_keys), Watch(PODS, _key_of_unready_node))

    def copy_memory(self, source: NodeLifecycle, _: State) -> None:
        self._last_heartbeats, self._last_tainted = dict(source._last_heartbeats), dict(source._last_tainted)
        self._was_ready = source._was_ready.fork()

    def _find_keys(self, change: Change, state: State) -> list[Key]:
        """The node itself; also all that are not ready when one becomes ready, ceases to be, or goes."""
        name = change.key.name
        node = state.get(Node, Key("", name))
        is_ready = node is not None and zones.is_ready(node)
        if self._was_ready.get(name) == is_ready and node is not None:
            return [Key("", name)]
        self._was_ready[name] = is_ready
        unready = {node_name for names in state.index_of(ZoneIndex).unready.values() for node_name in names}
        return [Key("", node_name) for node_name in sorted({name, *unready})]

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None:
            self._last_heartbeats.pop(key.name, None)
            self._was_ready.pop(key.name, None)
            return DONE
        if not is_silent(node):
            self._last_heartbeats.pop(key.name, None)
            return self._update_taints(key, node, state, now)
        drawn = now - HEARTBEAT * self.chance.share(key.name, now)
        last_heartbeat = self._last_heartbeats.setdefault(key.name, drawn)
        left = _next_monitor_round(last_heartbeat + GRACE) - now
        ready = condition_of(node.document, "Ready") or {}
        if ready.get("status") != "Unknown":
            if left > 0:
                return Outcome(requeue_after=left)
            text = f"Node {key.name} status is now: NodeNotReady"
            conditions = _build_unknown_conditions(node, last_heartbeat, now)
            return Outcome((_patch_conditions(key, conditions), note_about(NODES, node, "NodeNotReady", text)))
        return self._update_taints(key, node, state, now)

    def _update_taints(self, key: Key, node: Node, state: State, now: float) -> Outcome:
        ready = (condition_of(node.document, "Ready") or {}).get("status", "Unknown")
        if not is_silent(node) and ready != "True":
            return Outcome((_patch_conditions(key, _build_recovered_conditions(node, now)),))
        actions: list[Action] = []
        if ready != "True":
            actions += _mark_pods_unready(state, key.name, now)
        wanted, wait = taints.list_wanted(node, ready), 0.0
        if wanted and wanted[-1]["effect"] == "NoExecute":
            wait = self._seconds_to_no_execute(node, wanted[-1], state.index_of(ZoneIndex), now)
            if wait > 0:
                wanted = wanted[:-1]
        updated = [
            *taints.list_foreign(node),
            *(taints.find(node, taint) or {**taint, "timeAdded": format_time(now)} for taint in wanted),
        ]
        if updated != (value_at(node.document, "spec.taints") or []):
            # The list is written whole, as read at this version: what others put into it meanwhile must not be lost.
            meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
            patch = {"metadata": meta, "spec": {"taints": updated or None}}
            actions.append(Patch(NODES, key, PatchBody("merge", patch, manager=pods.MANAGER)))
        return Outcome(tuple(actions), wait if wait and wait != inf else None)

    def _seconds_to_no_execute(self, node: Node, taint: Document, zone_index: ZoneIndex, now: float) -> float:
        """Seconds until the node may have its NoExecute taint; 0 for one that has it and may keep it."""
        if zone_index.is_all_unready:
            return inf
        if taints.find(node, taint):
            return 0.0
        zone = zones.zone_of(node)
        wait = max(0.0, self._last_tainted.get(zone, -inf) + zone_index.seconds_between_taints(zone) - now)
        if not wait:
            self._last_tainted[zone] = now
        return wait


def _next_monitor_round(moment: float) -> float:
    return -(-moment // MONITOR) * MONITOR


def _build_unknown_conditions(node: Node, last_heartbeat: float, now: float) -> list[Document]:
    """The node's conditions, all with status Unknown."""
    conditions = []
    for condition in value_at(node.document, "status.conditions") or [{"type": "Ready", "status": "Unknown"}]:
        cause = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        times = {"lastHeartbeatTime": format_time(last_heartbeat), "lastTransitionTime": format_time(now)}
        conditions.append({**condition, "status": "Unknown", **cause, **times})
    return conditions


def _build_recovered_conditions(node: Node, now: float) -> list[Document]:
    """The conditions that a kubelet writes when it starts or comes back: Ready, and no other."""
    conditions = []
    for condition in value_at(node.document, "status.conditions") or [{"type": "Ready"}]:
        is_ready = condition["type"] == "Ready"
        reason = "KubeletReady" if is_ready else f"KubeletHasNo{condition['type']}"
        times = {"lastHeartbeatTime": format_time(now), "lastTransitionTime": format_time(now)}
        status = {"status": "True" if is_ready else "False", "reason": reason, "message": ""}
        conditions.append({**condition, **status, **times})
    if not any(condition["type"] == "Ready" for condition in conditions):
        conditions.append(
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": format_time(now)}
        )
    return conditions


def _patch_conditions(key: Key, conditions: list[Document]) -> Patch:
    return Patch(
        NODES, key, PatchBody("strategic", {"status": {"conditions": conditions}}, manager="kubelet"), "status"
    )


def _mark_pods_unready(state: State, node: str, now: float) -> list[Action]:
    """Set the Ready condition of the node's ready pods to False, each with its Event."""
    actions: list[Action] = []
    for pod in state.pods_on(node):
        if not pods.is_ready(pod):
            continue
        condition = {"type": "Ready", "status": "False"}  # the real one gives no reason either
        status = {"conditions": [{**condition, "lastTransitionTime": format_time(now)}]}
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        actions.append(Patch(PODS, key_of(pod), PatchBody("strategic", patch, manager=pods.MANAGER), "status"))
        actions.append(note_about_pod(pod, "NodeNotReady", "Node is not ready", is_warning=True))
    return actions
