"""How close the pods of a workload came: the most on one node at once, and the nodes where two versions met.

The recorder calls it with every change of a pod. Terminating pods count, for they still run; finished ones do not.
"""

from __future__ import annotations

from wukong.api.core import Pod

_VERSION_LABELS = ("pod-template-hash", "controller-revision-hash")


class Colocation:
    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], dict[str, str]] = {}  # workload and node → uid of a pod → its version
        self._mixed_nodes: dict[str, set[str]] = {}  # workload → nodes on which versions met

    def hear(self, workload: str, pod: Pod, *, is_gone: bool) -> tuple[int, int]:
        """How many of the workload's pods are on this pod's node now, and on how many nodes its versions have met."""
        node, uid, mixed_nodes = pod.spec.node_name, pod.metadata.uid, self._mixed_nodes.setdefault(workload, set())
        if not node:
            return 0, len(mixed_nodes)
        versions = self._versions.setdefault((workload, node), {})
        if is_gone or pod.is_finished:
            versions.pop(uid, None)
        else:
            version = _version_of(pod)
            if versions.get(uid) == version:
                return len(versions), len(mixed_nodes)
            versions[uid] = version
        if len(set(versions.values())) > 1:
            mixed_nodes.add(node)
        return len(versions), len(mixed_nodes)


def _version_of(pod: Pod) -> str:
    labels = pod.metadata.labels
    for label in _VERSION_LABELS:
        if label in labels:
            return labels[label]
    return ""
