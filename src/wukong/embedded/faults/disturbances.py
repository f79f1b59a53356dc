"""What people, clouds and machines do to a cluster that nobody asked for. Called by faults.py at its moments.

Each act goes straight to the server, is written to the trace as a stranger's, and is undone by itself after a while:
nodes come again, notices are recalled, sizes restored, finalizers removed. So the cluster can come to rest afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wukong.actions import Action, Create, Delete, Patch
from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.behaviour import FORMER_SILENT, SILENT
from wukong.embedded.store.documents import condition_of, meta_of, without_fields
from wukong.embedded.world.process import Step
from wukong.embedded.world.transport import perform
from wukong.errors import ClusterError
from wukong.placement.leaving_nodes import NOTICE, TAINTS
from wukong.ports import Document, PatchBody
from wukong.runtime.dispatch import Item
from wukong.state import Change

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

NAME = "stranger"
FINALIZER = "example.com/stuck"
_COST = "controller.kubernetes.io/pod-deletion-cost"


class Disturbances:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._busy: dict[str, None] = {}  # nodes something is the matter with
        self._flapping: dict[str, bool] = {}  # silent node → whether it was found not ready
        self._noticed: dict[str, bool] = {}  # node whose notice will be recalled → whether a pod was placed meanwhile
        self._scaled: dict[str, None] = {}  # uids of Deployments whose size is to be restored
        self._removed: dict[Key, str] = {}  # pod that was removed → its uid

    # ---- what is seen of it

    def heard(self, change: Change) -> None:
        new, old = change.new, change.old
        if isinstance(new, Node) and new.metadata.name in self._flapping:
            ready = condition_of(new.document, "Ready") if hasattr(new, "document") else None
            self._flapping[new.metadata.name] |= ready is not None and ready["status"] != "True"
        if isinstance(new, Pod):
            if new.spec.node_name and not (isinstance(old, Pod) and old.spec.node_name):
                self._noticed = dict.fromkeys(self._noticed, True)
            if change.key in self._removed and self._removed[change.key] != new.metadata.uid:
                del self._removed[change.key]
                self.faults.ledger.confirm("recreated")

    # ---- nodes

    def node_flapping(self) -> None:
        name = self._pick_node()
        if name is None:
            return
        self._begin("node-flapping", name)
        self._flapping[name] = False
        self._do(_on_node(name, {"metadata": {"annotations": {SILENT: "true"}}}))
        self._later(20.0, 100.0, partial(self._come_back, name))

    def _come_back(self, name: str) -> None:
        if self._flapping.pop(name):
            self.faults.ledger.confirm("node-flapping")
        self._busy.pop(name)
        self._do(_on_node(name, {"metadata": {"annotations": {SILENT: None}}}))

    def spot_notice(self) -> None:
        name = self._pick_node()
        if name is not None:
            self._begin("spot-notice", name)
            self._notify(name)
            self._later(0.0, 120.0, partial(self._reclaim, "spot-notice", [name]))

    def notice_cancelled(self) -> None:
        name = self._pick_node()
        if name is not None:
            self._begin("notice-cancelled", name)
            self._noticed[name] = False
            self._notify(name)
            self._later(10.0, 90.0, partial(self._recall, name))

    def _recall(self, name: str) -> None:
        if self._noticed.pop(name):
            self.faults.ledger.confirm("notice-cancelled")
        self._busy.pop(name)
        found = self._node(name)
        if found is not None:
            left = [each for each in (found["spec"].get("taints") or []) if each["key"] != TAINTS[0]]
            self._do(_on_node(name, {"metadata": {"annotations": {NOTICE: None}}, "spec": {"taints": left or None}}))

    def mass_reclaim(self) -> None:
        names = [each for each in (self._pick_node() for _ in range(max(2, len(self._nodes()) // 3))) if each]
        names = list(dict.fromkeys(names))
        if len(names) > 1:
            self.faults.ledger.inject("mass-reclaim")
            self._busy |= dict.fromkeys(names)
            self._reclaim("mass-reclaim", names)

    def _reclaim(self, fault: str, names: list[str]) -> None:
        state = self.faults.world.state
        if any(state.pods.on_node(name) for name in names):
            self.faults.ledger.confirm(fault)
        for name in names:
            found = self._node(name)
            self._do(Delete(NODES, Key("", name)))
            if found is None:  # somebody was faster, and will see to it
                self._busy.pop(name)
            else:
                self._later(5.0, 90.0, partial(self._add, _fresh(found)))

    def _add(self, node: Document) -> None:
        self._busy.pop(meta_of(node)["name"])
        self._do(Create(NODES, node))

    def _notify(self, name: str) -> None:
        found = self._node(name)
        if found is None:
            return
        taint = {"key": TAINTS[0], "value": "true", "effect": "NoSchedule"}
        taints = [*(found["spec"].get("taints") or []), taint]
        self._do(_on_node(name, {"metadata": {"annotations": {NOTICE: "2m"}}, "spec": {"taints": taints}}))

    # ---- objects

    def recreated(self) -> None:
        """A pod whose name will come again: of a StatefulSet, or nobody's."""
        named = [
            it for it in self._pods() if (owner := controller_of(it.metadata)) is None or owner.kind == "StatefulSet"
        ]
        if not named:
            return
        pod = self.faults.chosen("recreated", named)
        key = Key(pod.metadata.namespace, pod.metadata.name)
        body = self.faults.world.server.get(PODS, key)
        self.faults.ledger.inject("recreated")
        self._removed[key] = pod.metadata.uid
        self._do(Delete(PODS, key, uid=pod.metadata.uid, grace_seconds=0))
        if controller_of(pod.metadata) is None:
            self._do(Create(PODS, _again(body), key.namespace))

    def foreign_edit(self) -> None:
        which = int(4 * self.faults.share("edit"))
        if which == 0:
            self._scale()
            return
        if which == 1:
            name = self.faults.chosen("edited node", self._nodes()) if self._nodes() else None
            if name is not None:
                self._edit(Patch(NODES, Key("", name), PatchBody("merge", {"metadata": {"labels": {NAME: "here"}}})))
            return
        if not self._pods():
            return
        pod = self.faults.chosen("edited", self._pods())
        number = str(int(100 * self.faults.share("cost")))
        body = {"annotations": {_COST: number}} if which == 2 else {"labels": {NAME: number}}
        key = Key(pod.metadata.namespace, pod.metadata.name)
        self._edit(Patch(PODS, key, PatchBody("merge", {"metadata": body})))

    def _edit(self, patch: Patch) -> None:
        self.faults.ledger.inject("foreign-edit")
        self.faults.ledger.expect(("about", patch.key), "foreign-edit")
        self._do(patch)

    def _scale(self) -> None:
        found = self.faults.world.server.list(DEPLOYMENTS).items
        free = [each for each in found if meta_of(each)["uid"] not in self._scaled and _is_complete(each)]
        if not free:
            return
        chosen = self.faults.chosen("scaled", free)
        key, uid = Key(meta_of(chosen)["namespace"], meta_of(chosen)["name"]), meta_of(chosen)["uid"]
        self._scaled[uid] = None
        before = chosen["spec"].get("replicas", 1)
        after = max(0, before + (1 if self.faults.share("more") < 0.5 else -1))
        self._edit(_sized(key, after))
        self._later(5.0, 60.0, partial(self._restore, key, uid, before, after))

    def _restore(self, key: Key, uid: str, before: int, after: int) -> None:
        """Unless somebody else has changed it since. Not in the middle of a rollout: Kubernetes itself never ends one
        whose old ReplicaSet happens to have the size that is asked for now, but was sized for another."""
        try:
            found = self.faults.world.server.get(DEPLOYMENTS, key)
        except ClusterError:
            self._scaled.pop(uid)
            return
        if found["spec"].get("replicas") == after and not _is_complete(found):
            self._later(5.0, 5.0, partial(self._restore, key, uid, before, after))
            return
        self._scaled.pop(uid)
        if found["spec"].get("replicas") == after:
            self._do(_sized(key, before))

    def stuck_finalizer(self) -> None:
        bound = [pod for pod in self._pods() if pod.spec.node_name]
        if not bound:
            return
        pod = self.faults.chosen("stuck", bound)
        key = Key(pod.metadata.namespace, pod.metadata.name)
        self.faults.ledger.inject("stuck-finalizer")
        self._do(Patch(PODS, key, PatchBody("merge", {"metadata": {"finalizers": [FINALIZER]}})))
        self._do(Delete(PODS, key, uid=pod.metadata.uid))
        self._later(10.0, 90.0, partial(self._let_go, key, pod.metadata.uid))

    def _let_go(self, key: Key, uid: str) -> None:
        try:
            found = self.faults.world.server.get(PODS, key)
        except ClusterError:
            return
        if meta_of(found)["uid"] != uid:
            return
        if meta_of(found).get("deletionGracePeriodSeconds") == 0:  # its kubelet is done with it
            self.faults.ledger.confirm("stuck-finalizer")
        self._do(Patch(PODS, key, PatchBody("merge", {"metadata": {"finalizers": None}})))

    # ---- small change

    def _begin(self, fault: str, node: str) -> None:
        self.faults.ledger.inject(fault)
        self._busy[node] = None

    def _nodes(self) -> list[str]:
        """Nodes nothing is the matter with."""
        found = self.faults.world.state.all(Node)
        return [
            it.metadata.name
            for it in found
            if it.metadata.name not in self._busy and not {SILENT, FORMER_SILENT} & it.metadata.annotations.keys()
        ]

    def _pick_node(self) -> str | None:
        """One in three at most is troubled at a time: somebody must be left to carry on."""
        free = self._nodes()
        total = len(free) + len(self._busy)
        return self.faults.chosen("node", free) if free and 3 * len(self._busy) < total else None

    def _node(self, name: str) -> Document | None:
        try:
            return self.faults.world.server.get(NODES, Key("", name))
        except ClusterError:
            return None

    def _pods(self) -> list[Pod]:
        return [pod for pod in self.faults.world.state.all(Pod) if not pod.is_terminating and not pod.is_finished]

    def _later(self, least: float, most: float, happen: partial[None]) -> None:
        seconds = least + (most - least) * self.faults.share("later")
        self.faults.world.agenda.at(self.faults.world.clock.now() + seconds, happen)

    def _do(self, action: Action) -> None:
        world, error = self.faults.world, ""
        try:
            perform(world.server, action)
        except ClusterError as refusal:  # somebody was faster
            error = f"{type(refusal).__name__}: {refusal}"
        world.trace.append(Step(world.clock.now(), Item(NAME, Key("", "")), action, error))


def _on_node(name: str, body: Document) -> Patch:
    return Patch(NODES, Key("", name), PatchBody("merge", body, manager=NAME))


def _sized(key: Key, replicas: int) -> Patch:
    return Patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": replicas}}, manager=NAME))


def _is_complete(deployment: Document) -> bool:
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    counts = (status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas"))
    is_seen = status.get("observedGeneration", 0) >= meta_of(deployment)["generation"]
    return is_seen and all(count == wanted for count in counts)


def _fresh(node: Document) -> Document:
    """The same machine, new: as it first registered."""
    meta = {"name": meta_of(node)["name"], "labels": meta_of(node).get("labels") or {}}
    theirs = [each for each in node["spec"].get("taints") or [] if "kubernetes.io/" not in each["key"]]
    taints = [each for each in theirs if each["key"] != TAINTS[0]]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {name: node["status"][name] for name in ("capacity", "allocatable") if name in node["status"]}
    spec = {"taints": taints} if taints else {}
    return {"metadata": meta, "spec": spec, "status": {**status, "conditions": [ready]}}


def _again(pod: Document) -> Document:
    meta = meta_of(pod)
    kept = {name: meta[name] for name in ("name", "labels", "annotations") if name in meta}
    return {"metadata": kept, "spec": without_fields(pod["spec"], "nodeName")}
