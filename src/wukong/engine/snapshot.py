"""The snapshot: nodes and placed pods as columns, kept current by assume, forget and node changes.

Everything that decides works on a snapshot: place.py puts pods on it, view.py compiles a pod against it, preempt.py
takes pods away on trial. `fork()` gives an independent copy for what-if. It never decides anything itself.

    load[line, node]   line 0: pods placed, 1–2: cpu and memory with defaults for what is missing, then one per resource
    room[line, node]   the same lines: what the node can hold (lines 1–2 repeat cpu and memory)

A resource has a line once a node offers it. What pods ask for and no node has ever offered shares one line, of which
nobody has room: anybody may name thousands of resources in one pod, and each line costs every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from wukong.api.core import Node, Pod
from wukong.api.objects import Objects
from wukong.engine.arrays import Ints
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.engine.domain_counter import DomainCounter
from wukong.engine.facts import Facts, read_facts
from wukong.engine.layered_dict import LayeredDict
from wukong.engine.nodes import Column, NodeRow, NodeRows, label_column, row_column
from wukong.engine.oversized_loads import OversizedLoads, cap, is_oversized
from wukong.engine.template import Template, TemplateTable
from wukong.engine.volume_facts import VolumeFacts
from wukong.engine.volume_use import VolumeUse
from wukong.semantics.host_ports import HostPort

if TYPE_CHECKING:
    from wukong.engine.view import View

PODS, NONZERO_CPU, NONZERO_MEMORY = 0, 1, 2
_FIRST_RESOURCE = 3
_UNOFFERED = ""
_MAX_VIEWS = 512


class PlacedPod(NamedTuple):
    """A pod on a node, by its template."""

    template: Template
    row: int
    start: str  # when it started, RFC 3339; "" if it has not


class Snapshot:
    """A cluster the engine can decide on."""

    def __init__(self, nodes: Iterable[Node] = (), facts: Facts | None = None) -> None:
        self.facts = facts or Facts()
        self.table = TemplateTable()
        # resource → line; the nameless one stands for all that nobody offers
        self.lines: dict[str, int] = {"cpu": 3, "memory": 4, "ephemeral-storage": 5, _UNOFFERED: 6}
        self.rows = NodeRows()
        self.row_of: dict[str, int] = {}
        self.pods: LayeredDict[str, PlacedPod] = LayeredDict()
        self.pending: dict[str, Pod] = {}  # known, but on no node
        self.stray: dict[str, tuple[Pod, str]] = {}  # on a node we do not know (yet)
        self.on_row: CopyOnWriteDicts[int, str, None] = (
            CopyOnWriteDicts()
        )  # node → its pods' keys, in the order they came
        self.ports: CopyOnWriteDicts[int, HostPort, None] = CopyOnWriteDicts()  # node → host ports in use
        self.placed: CopyOnWriteDicts[int, int, int] = CopyOnWriteDicts()  # template → node → how many
        self.volume_use = VolumeUse()
        self._placed_in: CopyOnWriteDicts[str, int, None] = CopyOnWriteDicts()  # namespace → the templates of `placed`
        self._by_number: dict[int, Template] = {}  # shared with forks, for numbers are never given twice
        # Topology keys used by placed pods' required anti-affinity, and by their other inter-pod rules. Only ever grow.
        self.anti_affinity_keys: dict[str, None] = {}
        self.preference_keys: dict[str, None] = {}
        self.load: Ints = np.zeros((7, 0), dtype=np.int64)
        self.room: Ints = np.zeros((7, 0), dtype=np.int64)
        self._oversized = OversizedLoads()
        self._forget_derived()
        self.set_nodes(nodes)

    @classmethod
    def of(cls, objects: Objects) -> Snapshot:
        """The snapshot of these objects: finished pods are left out, pods without a node wait in `pending`."""
        snapshot = cls(objects.nodes, read_facts(objects))
        bound_pods: list[tuple[str, Pod]] = []
        for pod in objects.pods:
            if pod.is_finished:
                continue
            if not pod.spec.node_name:
                snapshot.pending[pod.key] = pod
            elif pod.spec.node_name in snapshot.row_of:
                bound_pods.append((pod.key, pod))
            else:
                snapshot._set_stray(pod.key, pod, pod.spec.node_name)
        snapshot._assume_all(bound_pods)
        return snapshot

    def _forget_derived(self) -> None:
        """Drop what was computed from nodes, and all that was compiled."""
        self.columns: dict[str, Column] = {}
        self.row_numbers: Column | None = None
        self._images: dict[str, tuple[int, list[int]]] | None = None
        self._forget_compiled()

    def _forget_compiled(self) -> None:
        """Drop what was computed from nodes and facts together. Whoever keeps more of it compares `epoch`."""
        self.epoch = object()
        self.views: dict[tuple[int, int, str], View] = {}  # by template, profile and node asked for
        self.counters: list[DomainCounter] = []
        self.contributions: dict[int, list[tuple[DomainCounter, int, int]]] = {}  # template → counters its pods add to
        self.volume_use.log.clear()
        self.log: list[int] = []  # rows whose pods changed, oldest first; views read it from where they stopped

    # ---- nodes

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace all nodes. Placed pods stay on the nodes that remain; those of vanished nodes become stray."""
        self._rebuild(sorted((NodeRow(node) for node in nodes), key=lambda row: row.name))

    def add_nodes(self, *nodes: Node) -> None:
        """Add nodes, or update those of the same name."""
        self.put_row(*(NodeRow(node) for node in nodes))

    def put_row(self, *rows: NodeRow) -> None:
        if all(row.name in self.row_of for row in rows):
            for row in rows:
                self._update_node(row)
            return
        merged = {row.name: row for row in (*self.rows, *rows)}
        self._rebuild(sorted(merged.values(), key=lambda row: row.name))

    def remove_node(self, name: str) -> None:
        if name not in self.row_of:
            raise KeyError(f"no node {name!r} in the snapshot")
        self._rebuild([row for row in self.rows if row.name != name])

    def _update_node(self, row: NodeRow) -> None:
        number = self.row_of[row.name]
        if self.rows[number] == row:
            return
        self.rows = NodeRows((*self.rows[:number], row, *self.rows[number + 1 :]))
        self.ensure_lines(row.allocatable)
        self.room = self.room.copy()  # forks may share it
        self._fill_room(number, row)
        self._forget_derived()

    def _rebuild(self, rows: list[NodeRow]) -> None:
        """Replace the rows. Pods follow their nodes, those of vanished nodes become stray, stray ones return.

        Whatever could fail about a pod does so before anything is changed.
        """
        for pod, _ in self.stray.values():
            self.vector_of(self.table.intern(pod))
        old_names = [row.name for row in self.rows]
        self.rows = NodeRows(rows)
        self.row_of = {row.name: number for number, row in enumerate(rows)}
        for number, name in enumerate(old_names):
            if name not in self.row_of:
                for key in list(self.on_row.get(number, ())):
                    self._set_stray(key, self.forget(key).template.pod, name)
        self._move_pods([self.row_of.get(name, -1) for name in old_names])
        self.ensure_lines(name for row in rows for name in row.allocatable)
        self.room = np.zeros((len(self.lines) + _FIRST_RESOURCE, len(rows)), dtype=np.int64)
        for number, row in enumerate(rows):
            self._fill_room(number, row)
        self._forget_derived()
        for key, (pod, name) in list(self.stray.items()):
            if name in self.row_of:
                self.assume(key, pod, name)

    def _set_stray(self, key: str, pod: Pod, node_name: str) -> None:
        """Remember a pod of a node we do not know. Without its node's name it can be placed elsewhere as it is."""
        self.stray[key] = (replace(pod, spec=replace(pod.spec, node_name="")), node_name)

    def _move_pods(self, new_of: list[int]) -> None:
        """Everything kept per node moves from row i to row new_of[i]; rows with -1 are gone and hold no pods."""
        load = np.zeros((self.load.shape[0], len(self.rows)), dtype=np.int64)
        kept = [old for old, new in enumerate(new_of) if new >= 0]
        load[:, [new_of[old] for old in kept]] = self.load[:, kept]
        self.load = load
        self._oversized.move(new_of)
        if all(new_of[old] == old for old in kept):
            return
        self.on_row = CopyOnWriteDicts({new_of[row]: keys for row, keys in self.on_row.items()})
        self.ports = CopyOnWriteDicts({new_of[row]: ports for row, ports in self.ports.items()})
        self.placed = CopyOnWriteDicts(
            {number: {new_of[row]: count for row, count in counts.items()} for number, counts in self.placed.items()}
        )
        self.volume_use.move(new_of)
        moved = ((key, placed._replace(row=new_of[placed.row])) for key, placed in self.pods.items())
        self.pods = LayeredDict(moved)

    def _fill_room(self, number: int, row: NodeRow) -> None:
        self.room[:, number] = 0
        self.room[PODS, number] = row.allowed_pods
        for name, amount in row.allocatable.items():
            self.room[self.lines[name], number] = amount
        self.room[NONZERO_CPU, number] = row.allocatable.get("cpu", 0)
        self.room[NONZERO_MEMORY, number] = row.allocatable.get("memory", 0)

    def ensure_lines(self, names: Iterable[str]) -> None:
        """Give every resource that nodes offer, or that a profile scores by, a line.

        The table of lines is shared with forks and only grows; each pads its arrays.
        """
        for name in names:
            if name not in self.lines:
                self.lines[name] = len(self.lines) + _FIRST_RESOURCE
        self._pad()

    def _pad(self) -> None:
        missing = len(self.lines) + _FIRST_RESOURCE - self.load.shape[0]
        if missing > 0:
            self.load = np.pad(self.load, ((0, missing), (0, 0)))
            self.room = np.pad(self.room, ((0, missing), (0, 0)))
            for name in list(self.lines)[-missing:]:
                self._count_line(name)

    def line_of(self, resource: str) -> int:
        line = self.lines.get(resource)
        return self.lines[_UNOFFERED] if line is None else line

    def _count_line(self, resource: str) -> None:
        """Count a resource that has a line now: until now its pods counted among what nobody offers."""
        totals: dict[int, int] = {}
        for number, per_row in self.placed.items():
            if amount := self._by_number[number].requests.taken.get(resource, 0):
                for row, count in per_row.items():
                    totals[row] = totals.get(row, 0) + amount * count
        vector = np.zeros(self.load.shape[0], dtype=np.int64)
        for row, total in totals.items():
            changes = ((self.lines[resource], total), (self.lines[_UNOFFERED], -total))
            if row in self._oversized:
                self.load[:, row] = self._oversized.change(row, vector, changes)
            else:
                for line, change in changes:
                    self.load[line, row] += change

    def column(self, key: str) -> Column:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = label_column(self.rows, key)
        return column

    def column_of_rows(self) -> Column:
        """The column in which every node is a domain of its own."""
        if self.row_numbers is None:
            self.row_numbers = row_column(self.rows)
        return self.row_numbers

    def index_images(self) -> dict[str, tuple[int, list[int]]]:
        """Image → its size, as the first node reported it, and the nodes that hold it."""
        if self._images is None:
            self._images = {}
            for number, row in enumerate(self.rows):
                for name, size in row.images.items():
                    self._images.setdefault(name, (size, []))[1].append(number)
        return self._images

    # ---- facts

    def set_facts(self, facts: Facts) -> None:
        self.facts = facts
        self._forget_compiled()

    def set_volumes(self, volumes: VolumeFacts) -> None:
        """Replace what is known of claims and volumes. Only pods that have volumes are looked at again."""
        self.facts = replace_fields(self.facts, volumes=volumes)

    # ---- pods

    def assume(self, key: str, pod: Pod, node_name: str, start: str | None = None) -> None:
        """Count this pod as placed on this node. `key` is namespace/name."""
        started = pod.status.start_time or "" if start is None else start
        self._assume(key, self.table.intern(pod), self.row_of[node_name], started)

    def forget(self, key: str) -> PlacedPod:
        """Remove a placed pod. Returns what is needed to put it back."""
        placed = self.pods.pop(key)
        template, row, _ = placed
        self._add_load(row, template, -1)
        del self.on_row.own(row)[key]
        self.on_row.drop_if_empty(row)
        self._count_placed(template, row, -1)
        if template.ports:
            used = self.ports.own(row)
            for port in template.ports:
                used.pop(port, None)  # a set, as in kube-scheduler: the first of two holders to go frees the port
            self.ports.drop_if_empty(row)
        if template.has_volumes:
            self.volume_use.remove(key, template, row)
        for counter, weight, hits in self.contributions_of(template):
            counter.add(row, -weight, -hits)
        self.log.append(row)
        return placed

    def set_start(self, key: str, start: str) -> None:
        """A placed pod has started, which nothing compiled depends on: as if it were forgotten and assumed again."""
        placed = self.pods.pop(key)
        self.pods[key] = placed._replace(start=start)
        here = self.on_row.own(placed.row)
        del here[key]
        here[key] = None

    def assume_template(self, key: str, template: Template, row: int, start: str = "") -> None:
        """Count a pod of this template as placed on this row."""
        self._assume(key, template, row, start)

    def assume_many(self, template: Template, keys: Sequence[str], rows: Sequence[int]) -> None:
        """Place look-alike pods, the i-th on the i-th of `rows`, in one go."""
        for key in keys:
            self._check_not_placed(key)
        numbers, counts = np.unique(np.array(rows, dtype=np.intp), return_counts=True)
        vector = self.vector_of(template)  # first: it may widen `load`
        if template.is_oversized or self._oversized:
            for row, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self._add_load(row, template, count)
        else:
            self.load[:, numbers] += vector[:, None] * counts
        for row, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._count_placed(template, row, count)
            if template.ports:
                self.ports.own(row).update(dict.fromkeys(template.ports))
            for counter, weight, hits in self.contributions_of(template):
                counter.add(row, weight * count, hits * count)
        for key, row in zip(keys, rows, strict=True):
            self.on_row.own(row)[key] = None
            self.pods[key] = PlacedPod(template, row, "")
            if template.has_volumes:
                self._use_volumes(key, template, row)
        self.log.extend(numbers.tolist())

    def _assume(self, key: str, template: Template, row: int, start: str) -> None:
        self._check_not_placed(key)
        self._add_load(row, template, 1)
        self.stray.pop(key, None)
        self.pods[key] = PlacedPod(template, row, start)
        self.on_row.own(row)[key] = None
        self._count_placed(template, row, 1)
        if template.ports:
            self.ports.own(row).update(dict.fromkeys(template.ports))
        if template.has_volumes:
            self._use_volumes(key, template, row)
        for counter, weight, hits in self.contributions_of(template):
            counter.add(row, weight, hits)
        self.log.append(row)

    def _use_volumes(self, key: str, template: Template, row: int) -> None:
        node = self.rows[row]
        self.volume_use.add(key, template, row, node.name, node.labels, self.facts.volumes)

    def _add_load(self, row: int, template: Template, count: int) -> None:
        """Count so many more pods of this template on a node; less where it is negative."""
        vector = self.vector_of(template)  # first: it may widen `load`
        if template.is_oversized or row in self._oversized:
            self.load[:, row] = self._oversized.add(row, self.load[:, row], vector, count)
        else:
            self.load[:, row] += vector if count == 1 else vector * count

    def _check_not_placed(self, key: str) -> None:
        if key in self.pods:
            raise KeyError(f"pod {key} is already placed, on {self.rows[self.pods[key].row].name}")

    def _assume_all(self, bound_pods: list[tuple[str, Pod]]) -> None:
        """Many pods at once, before anything has been compiled: the columns are summed by numpy."""
        templates = [self.table.intern(pod) for _, pod in bound_pods]
        rows = np.array([self.row_of[pod.spec.node_name] for _, pod in bound_pods], dtype=np.intp)
        distinct = {template.number: template for template in templates}
        position = {number: i for i, number in enumerate(distinct)}
        which = np.array([position[template.number] for template in templates], dtype=np.intp)
        vectors = np.array(
            [self.vector_of(template) for template in distinct.values()], dtype=np.int64
        )  # [template, line]
        is_usual = ~np.array([template.is_oversized for template in templates], dtype=bool)
        for line in range(self.load.shape[0] if bound_pods else 0):
            np.add.at(self.load[line], rows[is_usual], vectors[which[is_usual], line])
        for number in np.flatnonzero(~is_usual).tolist():
            self._add_load(int(rows[number]), templates[number], 1)
        for (key, pod), template, row in zip(bound_pods, templates, rows.tolist(), strict=True):
            self.pods[key] = PlacedPod(template, row, pod.status.start_time or "")
            self.on_row.own(row)[key] = None
            self._count_placed(template, row, 1)
            if template.ports:
                self.ports.own(row).update(dict.fromkeys(template.ports))
            if template.has_volumes:
                self._use_volumes(key, template, row)

    def restore_row(self, row: int, order: Mapping[str, None], ports: Mapping[HostPort, None]) -> None:
        """After a trial: the same pods as before are back on the node; put their order and its ports back too."""
        self.on_row.put(row, order)
        self.ports.put(row, ports)

    def vector_of(self, template: Template) -> Ints:
        """What one placed pod of this template adds to each line of its node's load."""
        if len(template.vector) != len(self.lines) + _FIRST_RESOURCE:
            sums = [1, *template.requests.taken_nonzero, *(0 for _ in self.lines)]
            for name, amount in template.requests.taken.items():
                sums[self.line_of(name)] += amount
            template.vector = vector = cap(sums)
            template.is_oversized = is_oversized(vector)
        self._pad()
        return template.vector

    def _count_placed(self, template: Template, row: int, change: int) -> None:
        number = template.number
        if number not in self.placed:
            self._by_number[number] = template
            self._placed_in.own(template.namespace)[number] = None
            if template.has_terms:
                self._add_topology_keys(template)
        counts = self.placed.own(number)
        counts[row] = counts.get(row, 0) + change
        if not counts[row]:
            del counts[row]
            self.placed.drop_if_empty(number)
            if number not in self.placed:
                del self._placed_in.own(template.namespace)[number]
                self._placed_in.drop_if_empty(template.namespace)

    def _add_topology_keys(self, template: Template) -> None:
        self.anti_affinity_keys.update(dict.fromkeys(term.topology_key for term in template.anti_affinity_terms))
        others = (
            *template.affinity_terms,
            *template.preferred_affinity_terms,
            *template.preferred_anti_affinity_terms,
        )
        self.preference_keys.update(dict.fromkeys(term.topology_key for term in others))

    # ---- counters

    def register_counter(self, counter: DomainCounter) -> DomainCounter:
        """Fill a new counter from the pods placed so far and keep it current from now on."""
        for number in self.placed if counter.namespace is None else self._placed_in.get(counter.namespace, ()):
            weight, hits = counter.weigh(self._by_number[number])
            if hits:
                for row, count in self.placed[number].items():
                    counter.add(row, weight * count, hits * count)
                self.contributions_of(self._by_number[number]).append((counter, weight, hits))
        self.counters.append(counter)
        for number, contributions in self.contributions.items():
            if number not in self.placed:  # seen before, none placed just now
                weight, hits = counter.weigh(self._by_number[number])
                if hits:
                    contributions.append((counter, weight, hits))
        counter.changed_domains.clear()
        return counter

    def list_placed_templates(self) -> list[Template]:
        """The templates of which at least one pod is placed."""
        return [self._by_number[number] for number in self.placed]

    def contributions_of(self, template: Template) -> list[tuple[DomainCounter, int, int]]:
        """The counters that a placed pod of this template adds to, with its weight and hits in each."""
        contributions = self.contributions.get(template.number)
        if contributions is None:
            self._by_number[template.number] = template
            weights = ((counter, *counter.weigh(template)) for counter in self.counters)
            contributions = self.contributions[template.number] = [entry for entry in weights if entry[2]]
        return contributions

    # ---- copies

    def fork(self) -> Snapshot:
        """An independent copy. Cheap: per-node and per-template detail is shared until one side changes it."""
        copy = object.__new__(Snapshot)
        copy.facts, copy.table, copy.lines = self.facts, self.table, self.lines
        copy.rows, copy.row_of, copy.room = self.rows, self.row_of, self.room
        copy.load, copy._oversized = self.load.copy(), self._oversized.fork()
        copy.pods, copy.pending, copy.stray = self.pods.fork(), dict(self.pending), dict(self.stray)
        copy.on_row, copy.ports, copy.placed = self.on_row.fork(), self.ports.fork(), self.placed.fork()
        copy.volume_use = self.volume_use.fork()
        copy._placed_in, copy._by_number = self._placed_in.fork(), self._by_number
        copy.anti_affinity_keys, copy.preference_keys = dict(self.anti_affinity_keys), dict(self.preference_keys)
        copy._forget_compiled()
        copy.columns, copy.row_numbers, copy._images = self.columns, self.row_numbers, self._images
        return copy

    def drop_views(self) -> None:
        """Forget all compiled pods; they are compiled again when asked for."""
        self.views.clear()
        self.counters.clear()
        self.contributions.clear()
        self.log.clear()
        self.volume_use.log.clear()

    def drop_unused_templates(self) -> None:
        """Forget the templates of which no pod is placed, and what was compiled: what is asked for is made again."""
        self.drop_views()
        self.table.keep(self.placed)
        self._by_number = {number: self._by_number[number] for number in self.placed}
        self.anti_affinity_keys, self.preference_keys = {}, {}
        for template in self._by_number.values():
            self._add_topology_keys(template)

    def make_room_for_view(self) -> None:
        """Called before a view is added: at most _MAX_VIEWS compiled pods are kept current."""
        if len(self.views) >= _MAX_VIEWS:
            self.drop_views()
