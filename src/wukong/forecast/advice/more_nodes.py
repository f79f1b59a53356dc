"""More nodes like those that are there: the fewest that help, of each shape on which the pods may run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.core import Node
from wukong.api.resources import Key
from wukong.engine import Scheduler
from wukong.engine.new_nodes import list_fitting, list_new_nodes
from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.question import Question, pod_of
from wukong.forecast.node_copies import copy_node
from wukong.placement.prices import instance_type_of
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.tolerations import tolerates_node

CODE = "more-nodes"
MOST_SHAPES = 3
_MORE = (1, 2)  # than the least


def propose(question: Question) -> Iterator[Candidate]:
    """First as many as it is known to need; where only the way there is barred, one or two."""
    needed = question.play.nodes.needed
    for nodes in needed:
        yield from _propose_like(question, nodes.like, [nodes.count, nodes.count + 1])
    if not needed:
        for name in _list_shapes(question)[:MOST_SHAPES]:
            yield from _propose_like(question, name, list(_MORE))


def _list_shapes(question: Question) -> list[str]:
    """A node of each shape that the pods of some stuck workload may be on: first those where one fits now, beside the
    daemons that come with the node, then the others, the commonest first."""
    pods = [pod_of(workload) for workload in question.workloads] or question.refused_pods
    shapes, scheduler = list_new_nodes(question.before.snapshot), Scheduler(question.before.snapshot.fork())
    fitting = {shape.example.name for pod in pods for shape in list_fitting(scheduler, pod, shapes)}
    names = []
    for shape in shapes:
        node = question.before.get(Node, Key("", shape.example.name))
        if node is not None and any(allows_node(pod, node) and tolerates_node(pod, node) for pod in pods):
            names.append(shape.example.name)
    return sorted(names, key=lambda name: name not in fitting)


def _propose_like(question: Question, like: str, counts: list[int]) -> Iterator[Candidate]:
    node = question.before.get(Node, Key("", like))
    if node is None:
        return
    document = getattr(node, "document", None) or msgspec.to_builtins(node)
    kind = instance_type_of(node.metadata.labels)
    names_in_use = {key.name for key in question.before.of(Node)}
    free_names = [name for number in range(1, 1000) if (name := f"{like}-more-{number}") not in names_in_use]
    for count in counts:
        names = free_names[:count]
        words = "1 node" if count == 1 else f"{count} nodes"
        yield Candidate(
            code=CODE,
            text=f"Add {words} like {like}{f' ({kind})' if kind else ''}.",
            loss=Loss.MONEY,
            gives_up=f"{words.capitalize()} to pay for.",
            nodes=tuple(copy_node(document, name) for name in names),
        )
