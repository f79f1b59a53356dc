"""The node lifecycle controller: nodes that fall silent, their taints, their pods' readiness; and taint eviction.

    heard ─► no taint      silent ≥ 50 s ─► Ready Unknown, pods NotReady, NoSchedule ─► NoExecute (0.1 node/s per zone)
                                                         pods deleted tolerationSeconds after the NoExecute taint

Nobody renews leases here: a node is heard of until its annotation `sim.novasphere.dev/silent` says otherwise, and its
last heartbeat was up to ten seconds before that, by chance. The monitor looks every five seconds. Taint eviction is a
plain deletion: budgets are not asked. How fast the nodes of a zone are tainted, and when not at all, is in zones.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import ClassVar

from wukong.actions import DONE, Action, Outcome, Patch
from wukong.api.core import Taint
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note, of_pod
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.actors.node_lifecycle import zones
from wukong.embedded.actors.node_lifecycle.zones import Zones
from wukong.embedded.store.documents import condition_of, format_time, parse_time, value_at
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.ports import Document, PatchBody
from wukong.rules.taints import tolerates
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, each_side

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
GRACE, HEARTBEAT, MONITOR = 50.0, 10.0, 5.0


@each_side
def _unready_node(pod: Object, state: State) -> Iterable[Key]:
    """Pods matter only where their node is not ready: then they are not, either."""
    assert isinstance(pod, Pod)
    key = Key("", pod.spec.node_name)
    node = state.get(Node, key)
    ready = condition_of(node.document, "Ready") if node is not None else None
    return (key,) if node is not None and (ready is None or ready.get("status") != "True") else ()


@each_side
def _endangered(pod: Object, state: State) -> Iterable[Key]:
    assert isinstance(pod, Pod)
    node = state.get(Node, Key("", pod.spec.node_name))
    is_tainted = node is not None and any(taint.effect == "NoExecute" for taint in node.spec.taints)
    return (key_of(pod),) if is_tainted else ()


class NodeLifecycle:
    name = "nodelifecycle"

    def __init__(self, chance: Chance | None = None) -> None:
        self.chance = chance or Chance()
        self._heard: dict[str, float] = {}  # silent node → its last heartbeat
        self._last: dict[str, float] = {}  # zone → when the last of its nodes was tainted NoExecute
        self._was_ready: dict[str, bool] = {}
        self.watches = (Watch(NODES, self._concerned), Watch(PODS, _unready_node))

    def _concerned(self, change: Change, state: State) -> list[Key]:
        """The node itself; all that are not ready when one becomes so, ceases to be, or goes."""
        name = change.key.name
        node = state.get(Node, Key("", name))
        is_ready = node is not None and zones.is_ready(node)
        if self._was_ready.get(name) == is_ready and node is not None:
            return [Key("", name)]
        self._was_ready[name] = is_ready
        unready = {each for names in state.derived(Zones).unready.values() for each in names}
        return [Key("", each) for each in sorted({name, *unready})]

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None:
            self._heard.pop(key.name, None)
            self._was_ready.pop(key.name, None)
            return DONE
        if not is_silent(node):
            self._heard.pop(key.name, None)
            return self._keep_taints(key, node, state, now, wait=None)
        heard = self._heard.setdefault(key.name, now - HEARTBEAT * self.chance.share(key.name, now))
        left = _rounded(heard + GRACE) - now
        ready = condition_of(node.document, "Ready") or {}
        if ready.get("status") != "Unknown":
            if left > 0:
                return Outcome(requeue_after=left)
            text = f"Node {key.name} status is now: NodeNotReady"
            return Outcome((_status(key, _unknown(node, heard, now)), note(NODES, node, "NodeNotReady", text)))
        return self._keep_taints(key, node, state, now, wait=None)

    def _keep_taints(self, key: Key, node: Node, state: State, now: float, wait: float | None) -> Outcome:
        ready = (condition_of(node.document, "Ready") or {}).get("status", "Unknown")
        actions: list[Action] = []
        if not is_silent(node) and ready != "True":
            return Outcome((_status(key, _recovered(node, now)),))
        if ready != "True":
            actions += _marked_pods(state, key.name, now)
        kept, wanted = _others(node), _wanted(node, ready)
        if wanted and wanted[-1]["effect"] == "NoExecute":
            wait = self._wait(node, wanted[-1], state.derived(Zones), now)
            if wait > 0:
                wanted = wanted[:-1]
        made = [*kept, *(_has(node, each) or {**each, "timeAdded": format_time(now)} for each in wanted)]
        if made != (value_at(node.document, "spec.taints") or []):
            # The list is written whole, as read at this version: what others put into it meanwhile must not be lost.
            meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
            patch = {"metadata": meta, "spec": {"taints": made or None}}
            actions.append(Patch(NODES, key, PatchBody("merge", patch, manager=pods.MANAGER)))
        return Outcome(tuple(actions), wait if wait and wait != inf else None)

    def _wait(self, node: Node, taint: Document, found: Zones, now: float) -> float:
        """Seconds until it may have the taint that drives pods out; 0 for one that has it and may keep it."""
        if found.is_cut_off:
            return inf
        if _has(node, taint):
            return 0.0
        zone = zones.zone_of(node)
        wait = max(0.0, self._last.get(zone, -inf) + found.pause(zone) - now)
        if not wait:
            self._last[zone] = now
        return wait


class TaintEviction:
    name = "tainteviction"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_FROM_TAINTED_NODES})
    watches = (
        Watch(PODS, _endangered),
        Watch(NODES, pods.keys_on_node),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or pod.is_terminating or not pod.spec.node_name:
            return DONE
        node = state.get(Node, Key("", pod.spec.node_name))
        left = inf if node is None else seconds_left(pod, node, now)
        if left == inf:
            return DONE
        if left > 0:
            return Outcome(requeue_after=left)
        told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
        told["message"] = "Taint manager: deleting due to NoExecute taint"
        marked = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [told]}}
        patch = PatchBody("strategic", marked, manager=pods.MANAGER)
        said = of_pod(pod, "TaintManagerEviction", f"Marking for deletion Pod {key}")
        return Outcome((said, Patch(PODS, key, patch, "status"), pods.deletion(pod)))


def seconds_left(pod: Pod, node: Node, now: float) -> float:
    """Until the pod must leave: at once where a taint is not tolerated, else the shortest time it tolerates one."""
    found = [each for each in value_at(node.document, "spec.taints") or () if each.get("effect") == "NoExecute"]
    left = inf
    for each in found:
        taint = Taint(key=each["key"], value=each.get("value", ""), effect="NoExecute")
        matching = [it.toleration_seconds for it in pod.spec.tolerations if tolerates(it, taint)]
        if not matching:
            return 0.0
        limits = [limit for limit in matching if limit is not None]
        if limits:
            since = parse_time(each["timeAdded"]) if each.get("timeAdded") else now
            left = min(left, max(0.0, since + max(0, min(limits)) - now))
    return left


def _rounded(moment: float) -> float:
    return -(-moment // MONITOR) * MONITOR


def _wanted(node: Node, ready: str) -> list[Document]:
    """What is wrong with a node keeps pods off it; a cordon does so twice, by this taint and by what it is."""
    key = {"True": "", "False": NOT_READY}.get(ready, UNREACHABLE)
    troubles = [taint for kind, taint in PRESSURES.items() if _is_true(node, kind)]
    cordoned = [UNSCHEDULABLE] if node.spec.unschedulable else []
    wanted = [{"key": each, "effect": "NoSchedule"} for each in [*([key] if key else []), *troubles, *cordoned]]
    return [*wanted, *([{"key": key, "effect": "NoExecute"}] if key else [])]


def _is_true(node: Node, kind: str) -> bool:
    return (condition_of(node.document, kind) or {}).get("status") == "True"


def _others(node: Node) -> list[Document]:
    """Taints that are not ours to keep: those of other keys, and what somebody else made NoExecute of ours."""
    ours = {(key, effect) for key in (NOT_READY, UNREACHABLE) for effect in ("NoSchedule", "NoExecute")}
    ours |= {(key, "NoSchedule") for key in (UNSCHEDULABLE, *PRESSURES.values())}
    return [
        each for each in value_at(node.document, "spec.taints") or () if (each["key"], each.get("effect")) not in ours
    ]


def _has(node: Node, taint: Document) -> Document | None:
    found = value_at(node.document, "spec.taints") or ()
    same = (each for each in found if (each["key"], each["effect"]) == (taint["key"], taint["effect"]))
    return next(same, None)


def _unknown(node: Node, heard: float, now: float) -> list[Document]:
    """What the node last said of itself is not believed any more."""
    made = []
    for each in value_at(node.document, "status.conditions") or [{"type": "Ready", "status": "Unknown"}]:
        told = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        times = {"lastHeartbeatTime": format_time(heard), "lastTransitionTime": format_time(now)}
        made.append({**each, "status": "Unknown", **told, **times})
    return made


def _recovered(node: Node, now: float) -> list[Document]:
    """What a kubelet says that starts or comes back."""
    made = []
    for each in value_at(node.document, "status.conditions") or [{"type": "Ready"}]:
        is_ready = each["type"] == "Ready"
        reason = "KubeletReady" if is_ready else f"KubeletHasNo{each['type']}"
        times = {"lastHeartbeatTime": format_time(now), "lastTransitionTime": format_time(now)}
        made.append({**each, "status": "True" if is_ready else "False", "reason": reason, "message": "", **times})
    if not any(each["type"] == "Ready" for each in made):
        made.append(
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": format_time(now)}
        )
    return made


def _status(key: Key, conditions: list[Document]) -> Patch:
    return Patch(
        NODES, key, PatchBody("strategic", {"status": {"conditions": conditions}}, manager="kubelet"), "status"
    )


def _marked_pods(state: State, node: str, now: float) -> list[Action]:
    """A node that is not ready has no ready pods."""
    made: list[Action] = []
    for found in state.pods_on(node):
        if not pods.is_ready(found):
            continue
        told = {"type": "Ready", "status": "False"}  # the real one gives no reason either
        status = {"conditions": [{**told, "lastTransitionTime": format_time(now)}]}
        patch = {"metadata": {"uid": found.metadata.uid}, "status": status}
        made.append(Patch(PODS, key_of(found), PatchBody("strategic", patch, manager=pods.MANAGER), "status"))
        made.append(of_pod(found, "NodeNotReady", "Node is not ready", is_warning=True))
    return made
