"""Whether our scheduler's placements are those that the plain rules allow and prefer, one after the other.

Called by compare.py after a burst, outside of what is measured. Every placement must be legal on the cluster as it was
when it was decided, with all that was decided before; some of them, evenly chosen, must have the highest score of all
nodes, too: plain rules take long for a thousand nodes. It shares no code with who decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from testbed.client import Json
from wukong.api.core import Node, Pod
from wukong.api.documents import without_nulls
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.rules import Cluster, decide
from wukong.rules.filters import Filters

SCORED = 20  # placements of a burst that are scored on every node
PROFILE = default_profile()


class Check(NamedTuple):
    placed: int = 0
    scored: int = 0
    problems: tuple[str, ...] = ()

    def __add__(self, other: object) -> Check:
        assert isinstance(other, Check)
        return Check(self.placed + other.placed, self.scored + other.scored, self.problems + other.problems)


class Choices:
    """The choices that our scheduler writes down, as far as they are new."""

    def __init__(self, path: Path) -> None:
        self.path, self._read = path, 0

    def take(self) -> list[tuple[str, str]]:
        """Those since the last call: namespace/name and node, in the order of the decisions."""
        lines = self.path.read_text("utf-8").splitlines()
        fresh, self._read = lines[self._read :], len(lines)
        return [(pod, node) for pod, _, node in (line.partition(" ") for line in fresh)]


def check_burst(nodes: list[Json], stored: list[Json], choices: list[tuple[str, str]]) -> Check:
    """Replay a burst on empty nodes. `stored` are its pods as the API server has them."""
    pods = {pod.key: pod for pod in (msgspec.convert(without_nulls(document), Pod) for document in stored)}
    last: dict[str, str] = {}  # a pod that was decided again, after a binding that failed, counts by the last
    for key, node in choices:
        last.pop(key, None)
        last[key] = node
    cluster = Cluster(Objects(nodes=[msgspec.convert(without_nulls(node), Node) for node in nodes]))
    problems = [
        f"{key}: on {pod.spec.node_name}, but {last.get(key)} was chosen"
        for key, pod in pods.items()
        if pod.spec.node_name != last.get(key)
    ]
    scored = 0
    for number, (key, node) in enumerate(last.items()):
        bound = pods[key]
        pod = msgspec.structs.replace(bound, spec=msgspec.structs.replace(bound.spec, node_name=""))
        verdict = Filters(cluster, pod, PROFILE).reject(cluster.nodes[node])
        if verdict is not None:
            problems.append(f"{key}: {node} is refused by {verdict.plugin}: {', '.join(verdict.reasons)}")
        elif number % max(1, len(last) // SCORED) == 0:
            scored += 1
            if node not in decide(cluster, pod, PROFILE).best:
                problems.append(f"{key}: {node} has not the highest score")
        cluster.add(bound, node)
    return Check(len(last), scored, tuple(problems))
