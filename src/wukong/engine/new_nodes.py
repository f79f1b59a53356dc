"""Nodes that could be added: one of each shape there is, with the daemons that would come with it and nobody else.

Called by cluster_changes.py, on forks of a snapshot. Two nodes have one shape if they differ only in name and host.
"""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass

from wukong.engine.nodes import NodeRow
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template

_AFTER_ALL_NAMES = "~new-"  # the rows of all other nodes stay where they are
_TYPE_LABELS = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
)


@dataclass(frozen=True)
class NewNode:
    """A node like `example`, empty but for these daemons."""

    example: NodeRow
    daemons: tuple[Template, ...]

    @property
    def type(self) -> tuple[str, ...]:
        """Equal for nodes that a cloud would call the same; where no instance type is known, each is its own."""
        labels = self.example.labels
        return tuple(labels.get(key, "") for key in _TYPE_LABELS) if _TYPE_LABELS[0] in labels else (self.example.name,)


def list_new_nodes(snapshot: Snapshot) -> list[NewNode]:
    """One for each shape of the nodes that take pods, the commonest first."""
    rows_by_shape: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(snapshot.rows):
        if not row.is_unschedulable:
            rows_by_shape.setdefault(row.shape(), []).append(number)
    commonest = sorted(rows_by_shape.values(), key=lambda rows: (-len(rows), rows[0]))
    return [NewNode(snapshot.rows[rows[0]], _find_daemons(snapshot, rows)) for rows in commonest]


def add_new_node(snapshot: Snapshot, *new_nodes: NewNode) -> list[str]:
    """Add these nodes and their daemons to a snapshot that may be changed. Returns their names."""
    names = [f"{_AFTER_ALL_NAMES}{number}" for number in range(len(new_nodes))]
    snapshot.put_row(*(new.example.copy(name=name) for new, name in zip(new_nodes, names, strict=True)))
    for new_node, name in zip(new_nodes, names, strict=True):
        for number, daemon in enumerate(new_node.daemons):
            snapshot.assume_template(f"{name}/{number}", daemon, snapshot.row_of[name])
    return names


def _find_daemons(snapshot: Snapshot, rows: list[int]) -> tuple[Template, ...]:
    """The pods of DaemonSets on one of these nodes, each DaemonSet once; on one of them a daemon may be missing."""
    counts: Tally[int] = Tally()
    daemons: dict[int, dict[object, Template]] = {}
    for row in rows:
        templates = (snapshot.pods[key].template for key in snapshot.on_row.get(row, ()))
        owned: dict[object, Template] = {
            (template.namespace, template.owner): template for template in templates if _is_daemon(template)
        }
        daemons[row], counts[row] = owned, len(owned)
    most = max(counts.values())
    return tuple(next(daemons[row] for row in rows if counts[row] == most).values())


def _is_daemon(template: Template) -> bool:
    return template.owner is not None and template.owner[1] == "DaemonSet" and not template.is_terminating
