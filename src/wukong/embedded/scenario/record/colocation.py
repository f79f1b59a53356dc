"""How close the pods of a workload came: the most on one node at once, and the nodes where two versions met.

Fed by recording.py with every change of a pod. Terminating pods count, for they still run; finished ones do not.
"""

from __future__ import annotations

from wukong.api.core import Pod

_VERSION = ("pod-template-hash", "controller-revision-hash")


class Colocation:
    def __init__(self) -> None:
        self._homes: dict[tuple[str, str], dict[str, str]] = {}  # workload and node → uid of a pod → its version
        self._mixed: dict[str, set[str]] = {}  # workload → nodes on which versions met

    def hear(self, workload: str, pod: Pod, *, is_gone: bool) -> tuple[int, int]:
        """How many of the workload's pods are on this pod's node now, and on how many nodes its versions have met."""
        node, uid, mixed = pod.spec.node_name, pod.metadata.uid, self._mixed.setdefault(workload, set())
        if not node:
            return 0, len(mixed)
        there = self._homes.setdefault((workload, node), {})
        if is_gone or pod.is_finished:
            there.pop(uid, None)
        else:
            there[uid] = next((pod.metadata.labels[key] for key in _VERSION if key in pod.metadata.labels), "")
        if len(set(there.values())) > 1:
            mixed.add(node)
        return len(there), len(mixed)
