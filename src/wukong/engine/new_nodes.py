"""Nodes that could be added: one of each shape there is, with the daemons that would come with it and nobody else.

Called by cluster_changes.py and by forecasts, on forks of a snapshot. Two nodes have one shape if they differ only in
name and host.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass

from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.engine.nodes import NodeRow
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template
from wukong.engine.view import View
from wukong.semantics.node_selectors import NODE_NAME_FIELD

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
    waiting = _list_waiting_daemons(snapshot)
    return [NewNode(snapshot.rows[rows[0]], _find_daemons(snapshot, rows, waiting)) for rows in commonest]


def list_fitting(scheduler: Scheduler, pod: Pod, new_nodes: Sequence[NewNode]) -> list[NewNode]:
    """Those of the new nodes on which the pod would fit, all asked about in one go, and again without those that fit.

    A plugin may want no other node where a better one has come too, as spot-first does.
    """
    fitting: list[NewNode] = []
    rest = list(new_nodes)
    while rest:
        fork = scheduler.snapshot.fork()
        names = add_new_node(fork, *rest)
        view = View(fork, fork.table.intern(pod), scheduler.profile, scheduler.plugins)
        view.sync()
        takes = [bool(view.feasible[fork.row_of[name]]) for name in names]
        if not any(takes):
            break
        fitting += [new_node for new_node, takes_pod in zip(rest, takes, strict=True) if takes_pod]
        rest = [new_node for new_node, takes_pod in zip(rest, takes, strict=True) if not takes_pod]
    return fitting


def add_new_node(snapshot: Snapshot, *new_nodes: NewNode) -> list[str]:
    """Add these nodes and their daemons to a snapshot that may be changed. Returns their names."""
    names = [f"{_AFTER_ALL_NAMES}{number}" for number in range(len(new_nodes))]
    snapshot.put_row(*(new.example.copy(name=name) for new, name in zip(new_nodes, names, strict=True)))
    for new_node, name in zip(new_nodes, names, strict=True):
        for number, daemon in enumerate(new_node.daemons):
            snapshot.assume_template(f"{name}/{number}", daemon, snapshot.row_of[name])
    return names


def _find_daemons(snapshot: Snapshot, rows: list[int], waiting: dict[str, list[Template]]) -> tuple[Template, ...]:
    """The pods of DaemonSets on one of these nodes, each DaemonSet once; on one of them a daemon may be missing."""
    counts: Tally[int] = Tally()
    daemons: dict[int, dict[object, Template]] = {}
    for row in rows:
        templates = [snapshot.pods[key].template for key in snapshot.on_row.get(row, ())]
        templates += waiting.get(snapshot.rows[row].name, [])
        owned: dict[object, Template] = {
            (template.namespace, template.owner): template for template in templates if _is_daemon(template)
        }
        daemons[row], counts[row] = owned, len(owned)
    most = max(counts.values())
    return tuple(next(daemons[row] for row in rows if counts[row] == most).values())


def _list_waiting_daemons(snapshot: Snapshot) -> dict[str, list[Template]]:
    """Pods of DaemonSets that have no node yet, by the node that they are for: on a full node a daemon waits for room,
    but to a new one it comes before all others, for it tolerates that the node is not ready."""
    waiting: dict[str, list[Template]] = {}
    for pod in snapshot.pending.values():
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind == "DaemonSet":
            waiting.setdefault(_name_node(pod), []).append(snapshot.table.intern(pod))
    return waiting


def _name_node(pod: Pod) -> str:
    """The node that the DaemonSet controller wrote into the pod's affinity; "" if it names none."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    fields = [field for term in terms for field in term.match_fields if field.key == NODE_NAME_FIELD]
    return next((field.values[0] for field in fields if field.operator == "In" and field.values), "")


def _is_daemon(template: Template) -> bool:
    return template.owner is not None and template.owner[1] == "DaemonSet" and not template.is_terminating
