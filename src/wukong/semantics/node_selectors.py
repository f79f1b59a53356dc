"""Node selectors and required node affinity: which nodes a pod, or a volume, may be on.

Compiled once, then asked node by node; the engine's NodeAffinity plugin asks the same terms of whole label columns.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Node, NodeSelector, NodeSelectorTerm, Pod
from wukong.semantics.label_syntax import Labels
from wukong.semantics.selectors import Selector, compile_expressions, require_labels, selects

NODE_NAME_FIELD = "metadata.name"


class FieldRequirement(NamedTuple):
    """A requirement on a field of the node. Fields other than metadata.name are read as empty."""

    key: str
    is_equal: bool
    value: str

    def holds(self, node_name: str) -> bool:
        return ((node_name if self.key == NODE_NAME_FIELD else "") == self.value) == self.is_equal


class NodeTerm(NamedTuple):
    """A term of a node selector: all of its requirements must hold."""

    labels: Selector
    fields: tuple[FieldRequirement, ...]

    def accepts(self, labels: Labels, node_name: str) -> bool:
        """Whether it accepts a node. Without a node name, as for volumes, the fields are not looked at."""
        return selects(self.labels, labels) and (node_name == "" or self.accepts_name(node_name))

    def accepts_name(self, node_name: str) -> bool:
        """Whether its requirements on fields hold for a node of this name."""
        return all(field.holds(node_name) for field in self.fields)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms that can accept a node: empty ones and those that kube-scheduler cannot read are left out."""
    compiled = [compile_term(term) for term in selector.node_selector_terms if not is_empty_term(term)]
    return tuple(term for term in compiled if term is not None)


def compile_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """None if kube-scheduler cannot read it."""
    labels = compile_expressions(term.match_expressions)
    is_readable = all(field.operator in ("In", "NotIn") and len(field.values) == 1 for field in term.match_fields)
    if labels is None or not is_readable:
        return None
    fields = [FieldRequirement(field.key, field.operator == "In", field.values[0]) for field in term.match_fields]
    return NodeTerm(labels, tuple(fields))


def is_empty_term(term: NodeSelectorTerm) -> bool:
    """Such a term accepts no node."""
    return not term.match_expressions and not term.match_fields


def accepts_node(terms: tuple[NodeTerm, ...], labels: Labels, node_name: str) -> bool:
    """Whether one of the terms accepts the node."""
    return any(term.accepts(labels, node_name) for term in terms)


def allows_node(pod: Pod, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity both accept the node."""
    labels = node.metadata.labels
    if not selects(require_labels(pod.spec.node_selector), labels):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return accepts_node(compile_node_selector(affinity.required), labels, node.metadata.name)
