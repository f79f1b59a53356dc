"""What people, clouds and machines do to a cluster that nobody asked for. Called by faults.py at its moments.

Each goes straight to the server, is written to the trace under the name `stranger`, and is undone after a while: nodes
are added again, notices are withdrawn, sizes restored, finalizers removed. So the cluster can come to rest afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from wukong.actions import Action, Create, Delete, Patch
from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS, STATEFUL_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, refers_to
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

ACTOR = "stranger"
FINALIZER = "example.com/stuck"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class Disturbances:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.by_type: dict[str, Callable[[], None]] = {
            "recreated": self.recreate_pod,
            "foreign-edit": self.edit_object,
            "stuck-finalizer": self.delete_pod_with_finalizer,
            "node-flapping": self.silence_node,
            "spot-notice": self.reclaim_node_after_notice,
            "notice-cancelled": self.give_notice_and_withdraw_it,
            "mass-reclaim": self.reclaim_many_nodes,
        }
        self._disturbed_nodes: dict[str, None] = {}
        self._silent_nodes: dict[str, bool] = {}  # node → whether it was found not ready
        self._nodes_on_notice: dict[str, bool] = {}  # node → whether a pod was bound while it was on notice
        self._scaled_deployments: dict[str, None] = {}  # uids of those whose size is to be restored
        self._removed_pods: dict[Key, str] = {}  # pod → its uid

    # ---- whether they had an effect

    def observe(self, change: Change) -> None:
        new, old = change.new, change.old
        if isinstance(new, Node) and new.metadata.name in self._silent_nodes:
            ready = condition_of(new.document, "Ready") if hasattr(new, "document") else None
            self._silent_nodes[new.metadata.name] |= ready is not None and ready["status"] != "True"
        if isinstance(new, Pod):
            if new.spec.node_name and not (isinstance(old, Pod) and old.spec.node_name):
                self._nodes_on_notice = dict.fromkeys(self._nodes_on_notice, True)
            if change.key in self._removed_pods and self._removed_pods[change.key] != new.metadata.uid:
                del self._removed_pods[change.key]
                self.faults.counts.count_effective("recreated")

    # ---- nodes

    def silence_node(self) -> None:
        name = self._choose_node()
        if name is None:
            return
        self._begin_on_node("node-flapping", name)
        self._silent_nodes[name] = False
        self._perform(_patch_node(name, {"metadata": {"annotations": {SILENT: "true"}}}))
        self._schedule(20.0, 100.0, partial(self._end_silence, name))

    def _end_silence(self, name: str) -> None:
        if self._silent_nodes.pop(name):
            self.faults.counts.count_effective("node-flapping")
        self._disturbed_nodes.pop(name)
        self._perform(_patch_node(name, {"metadata": {"annotations": {SILENT: None}}}))

    def reclaim_node_after_notice(self) -> None:
        name = self._choose_node()
        if name is not None:
            self._begin_on_node("spot-notice", name)
            self._give_notice(name)
            self._schedule(0.0, 120.0, partial(self._reclaim_nodes, "spot-notice", [name]))

    def give_notice_and_withdraw_it(self) -> None:
        name = self._choose_node()
        if name is not None:
            self._begin_on_node("notice-cancelled", name)
            self._nodes_on_notice[name] = False
            self._give_notice(name)
            self._schedule(10.0, 90.0, partial(self._withdraw_notice, name))

    def _withdraw_notice(self, name: str) -> None:
        if self._nodes_on_notice.pop(name):
            self.faults.counts.count_effective("notice-cancelled")
        self._disturbed_nodes.pop(name)
        node = self._get_node(name)
        if node is not None:
            taints = [taint for taint in (node["spec"].get("taints") or []) if taint["key"] != TAINTS[0]]
            body = {"metadata": {"annotations": {NOTICE: None}}, "spec": {"taints": taints or None}}
            self._perform(_patch_node(name, body))

    def reclaim_many_nodes(self) -> None:
        draws = max(2, len(self._undisturbed_nodes()) // 3)
        names = list(dict.fromkeys(name for name in [self._choose_node() for _ in range(draws)] if name))
        if len(names) > 1:
            self.faults.counts.count_injected("mass-reclaim")
            self._disturbed_nodes |= dict.fromkeys(names)
            self._reclaim_nodes("mass-reclaim", names)

    def _reclaim_nodes(self, fault: str, names: list[str]) -> None:
        state = self.faults.world.state
        if any(state.pods.on_node(name) for name in names):
            self.faults.counts.count_effective(fault)
        for name in names:
            node = self._get_node(name)
            self._perform(Delete(NODES, Key("", name)))
            if node is None:  # somebody else removed it, and will add it again
                self._disturbed_nodes.pop(name)
            else:
                self._schedule(5.0, 90.0, partial(self._add_node, _build_new_node(node)))

    def _add_node(self, node: Document) -> None:
        self._disturbed_nodes.pop(meta_of(node)["name"])
        self._perform(Create(NODES, node))

    def _give_notice(self, name: str) -> None:
        node = self._get_node(name)
        if node is None:
            return
        taint = {"key": TAINTS[0], "value": "true", "effect": "NoSchedule"}
        taints = [*(node["spec"].get("taints") or []), taint]
        self._perform(_patch_node(name, {"metadata": {"annotations": {NOTICE: "2m"}}, "spec": {"taints": taints}}))

    # ---- objects

    def recreate_pod(self) -> None:
        """Remove a pod whose name will come again: a StatefulSet's, or one without a controller."""
        pods = [
            pod
            for pod in self._active_pods()
            if (owner := controller_of(pod.metadata)) is None or refers_to(owner, STATEFUL_SETS)
        ]
        if not pods:
            return
        pod = self.faults.choose("recreated", pods)
        key = Key(pod.metadata.namespace, pod.metadata.name)
        body = self.faults.world.server.get(PODS, key)
        self.faults.counts.count_injected("recreated")
        self._removed_pods[key] = pod.metadata.uid
        self._perform(Delete(PODS, key, uid=pod.metadata.uid, grace_seconds=0))
        if controller_of(pod.metadata) is None:
            self._perform(Create(PODS, _build_new_pod(body), key.namespace))

    def edit_object(self) -> None:
        which = int(4 * self.faults.draw_fraction("edit"))
        if which == 0:
            self._scale_deployment()
            return
        if which == 1:
            self._label_node()
            return
        pods = self._active_pods()
        if not pods:
            return
        pod = self.faults.choose("edited", pods)
        number = str(int(100 * self.faults.draw_fraction("cost")))
        body = {"annotations": {_DELETION_COST: number}} if which == 2 else {"labels": {ACTOR: number}}
        key = Key(pod.metadata.namespace, pod.metadata.name)
        self._perform_edit(Patch(PODS, key, PatchBody("merge", {"metadata": body})))

    def _label_node(self) -> None:
        names = self._undisturbed_nodes()
        if names:
            key = Key("", self.faults.choose("edited node", names))
            self._perform_edit(Patch(NODES, key, PatchBody("merge", {"metadata": {"labels": {ACTOR: "here"}}})))

    def _perform_edit(self, patch: Patch) -> None:
        self.faults.counts.count_injected("foreign-edit")
        self.faults.counts.expect(("about", patch.key), "foreign-edit")
        self._perform(patch)

    def _scale_deployment(self) -> None:
        deployments = [
            deployment
            for deployment in self.faults.world.server.list(DEPLOYMENTS).items
            if meta_of(deployment)["uid"] not in self._scaled_deployments and _is_complete(deployment)
        ]
        if not deployments:
            return
        deployment = self.faults.choose("scaled", deployments)
        meta = meta_of(deployment)
        key, uid = Key(meta["namespace"], meta["name"]), meta["uid"]
        self._scaled_deployments[uid] = None
        before = deployment["spec"].get("replicas", 1)
        after = max(0, before + (1 if self.faults.draw_fraction("more") < 0.5 else -1))
        self._perform_edit(_build_scale_patch(key, after))
        self._schedule(5.0, 60.0, partial(self._restore_replicas, key, uid, before, after))

    def _restore_replicas(self, key: Key, uid: str, before: int, after: int) -> None:
        """Restore the size, unless somebody else has changed it since.

        Not in the middle of a rollout: Kubernetes itself never ends one whose old ReplicaSet happens to have the size
        that is asked for now, but was sized for another.
        """
        try:
            deployment = self.faults.world.server.get(DEPLOYMENTS, key)
        except ClusterError:
            self._scaled_deployments.pop(uid)
            return
        if deployment["spec"].get("replicas") == after and not _is_complete(deployment):
            self._schedule(5.0, 5.0, partial(self._restore_replicas, key, uid, before, after))
            return
        self._scaled_deployments.pop(uid)
        if deployment["spec"].get("replicas") == after:
            self._perform(_build_scale_patch(key, before))

    def delete_pod_with_finalizer(self) -> None:
        bound = [pod for pod in self._active_pods() if pod.spec.node_name]
        if not bound:
            return
        pod = self.faults.choose("stuck", bound)
        key = Key(pod.metadata.namespace, pod.metadata.name)
        self.faults.counts.count_injected("stuck-finalizer")
        self._perform(Patch(PODS, key, PatchBody("merge", {"metadata": {"finalizers": [FINALIZER]}})))
        self._perform(Delete(PODS, key, uid=pod.metadata.uid))
        self._schedule(10.0, 90.0, partial(self._remove_finalizer, key, pod.metadata.uid))

    def _remove_finalizer(self, key: Key, uid: str) -> None:
        try:
            pod = self.faults.world.server.get(PODS, key)
        except ClusterError:
            return
        if meta_of(pod)["uid"] != uid:
            return
        if meta_of(pod).get("deletionGracePeriodSeconds") == 0:  # its kubelet is done with it
            self.faults.counts.count_effective("stuck-finalizer")
        self._perform(Patch(PODS, key, PatchBody("merge", {"metadata": {"finalizers": None}})))

    # ---- helpers

    def _begin_on_node(self, fault: str, node: str) -> None:
        self.faults.counts.count_injected(fault)
        self._disturbed_nodes[node] = None

    def _undisturbed_nodes(self) -> list[str]:
        """The names of nodes that no disturbance is on."""
        return [
            node.metadata.name
            for node in self.faults.world.state.all(Node)
            if node.metadata.name not in self._disturbed_nodes
            and not {SILENT, FORMER_SILENT} & node.metadata.annotations.keys()
        ]

    def _choose_node(self) -> str | None:
        """One node in three at most is disturbed at a time, so that there is room for the pods."""
        names = self._undisturbed_nodes()
        total = len(names) + len(self._disturbed_nodes)
        return self.faults.choose("node", names) if names and 3 * len(self._disturbed_nodes) < total else None

    def _get_node(self, name: str) -> Document | None:
        try:
            return self.faults.world.server.get(NODES, Key("", name))
        except ClusterError:
            return None

    def _active_pods(self) -> list[Pod]:
        return [pod for pod in self.faults.world.state.all(Pod) if not pod.is_terminating and not pod.is_finished]

    def _schedule(self, least: float, most: float, act: partial[None]) -> None:
        """Call `act` after so many seconds, at least and at most."""
        seconds = least + (most - least) * self.faults.draw_fraction("later")
        self.faults.world.timers.add(self.faults.world.clock.now() + seconds, act)

    def _perform(self, action: Action) -> None:
        world, error = self.faults.world, ""
        try:
            perform(world.server, action)
        except ClusterError as refusal:  # somebody else has changed or removed it
            error = f"{type(refusal).__name__}: {refusal}"
        world.trace.append(Step(world.clock.now(), Item(ACTOR, Key("", "")), action, error))


def _patch_node(name: str, body: Document) -> Patch:
    return Patch(NODES, Key("", name), PatchBody("merge", body, manager=ACTOR))


def _build_scale_patch(key: Key, replicas: int) -> Patch:
    return Patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": replicas}}, manager=ACTOR))


def _is_complete(deployment: Document) -> bool:
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    counts = (status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas"))
    is_seen = status.get("observedGeneration", 0) >= meta_of(deployment)["generation"]
    return is_seen and all(count == wanted for count in counts)


def _build_new_node(node: Document) -> Document:
    """The same machine, new: as it first registered."""
    meta = {"name": meta_of(node)["name"], "labels": meta_of(node).get("labels") or {}}
    taints = [
        taint
        for taint in node["spec"].get("taints") or []
        if "kubernetes.io/" not in taint["key"] and taint["key"] != TAINTS[0]
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {name: node["status"][name] for name in ("capacity", "allocatable") if name in node["status"]}
    spec = {"taints": taints} if taints else {}
    return {"metadata": meta, "spec": spec, "status": {**status, "conditions": [ready]}}


def _build_new_pod(pod: Document) -> Document:
    meta = meta_of(pod)
    new_meta = {name: meta[name] for name in ("name", "labels", "annotations") if name in meta}
    return {"metadata": new_meta, "spec": without_fields(pod["spec"], "nodeName")}
