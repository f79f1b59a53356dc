"""How close the pods of a workload came: the most on one node at once, and the nodes where two versions met.

The recorder calls it with every change of a pod. Terminating pods count, for they still run; finished ones do not.
"""

from __future__ import annotations

from collections.abc import Mapping

from wukong.api.core import Pod
from wukong.engine.copy_on_write import CopyOnWriteDicts

_VERSION_LABELS = ("pod-template-hash", "controller-revision-hash")
_NONE: Mapping[str, str] = {}


class Colocation:
    def __init__(self) -> None:
        # workload → node → uid of a pod → its version; what a node has is never changed in place
        self._versions: CopyOnWriteDicts[str, str, Mapping[str, str]] = CopyOnWriteDicts()
        self._mixed_nodes: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()  # workload → nodes where versions met

    def fork(self) -> Colocation:
        copy = Colocation()
        copy._versions, copy._mixed_nodes = self._versions.fork(), self._mixed_nodes.fork()
        return copy

    def hear(self, workload: str, pod: Pod, *, is_gone: bool) -> tuple[int, int]:
        """How many of the workload's pods are on this pod's node now, and on how many nodes its versions have met."""
        node, uid, mixed_nodes = pod.spec.node_name, pod.metadata.uid, self._mixed_nodes.get(workload, _NONE)
        if not node:
            return 0, len(mixed_nodes)
        version = None if is_gone or pod.is_finished else _version_of(pod)
        nodes = self._versions.get(workload)
        versions = _NONE if nodes is None else nodes.get(node, _NONE)
        if versions.get(uid) != version:
            versions = self._set_version(workload, node, uid, version)
        if len(versions) > 1 and node not in mixed_nodes and len(set(versions.values())) > 1:
            mixed_nodes = self._mixed_nodes.own(workload)
            mixed_nodes[node] = None
        return len(versions), len(mixed_nodes)

    def _set_version(self, workload: str, node: str, uid: str, version: str | None) -> Mapping[str, str]:
        nodes = self._versions.own(workload)
        versions = {**nodes.get(node, _NONE)}
        if version is not None:
            versions[uid] = version
        else:
            del versions[uid]
        if versions:
            nodes[node] = versions
        else:
            del nodes[node]
            self._versions.drop_if_empty(workload)
        return versions


def _version_of(pod: Pod) -> str:
    for label in _VERSION_LABELS:
        if label in pod.metadata.labels:
            return pod.metadata.labels[label]
    return ""
