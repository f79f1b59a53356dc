"""The live engine snapshot: kept current from the changes of a State, so that decisions never wait for a rebuild.

Pods are counted at once: each touches one column. Nodes and facts (namespaces, services, owners, budgets, volumes) are
noted and brought in once per batch, when `current()` is asked for, because each makes the engine compile anew.
Called by State only. It never decides, and knows no time: which placements are assumed it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as replace_fields
from typing import Any

from msgspec.structs import replace

from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.resources import Key, key_of
from wukong.engine import Snapshot
from wukong.engine.facts import Owner, OwnerKey, owner_key_of, owner_selector_of, read_budgets, read_facts
from wukong.engine.layered_dict import LayeredDict
from wukong.engine.nodes import NodeRow
from wukong.engine.template import Template
from wukong.engine.volume_facts import TABLES as VOLUME_TABLES
from wukong.semantics.selectors import Selector

Mirrored = Mapping[str, Mapping[Key, Object]]  # group and kind → key → object

# What the engine's facts read of each kind. A change elsewhere (a ReplicaSet's status, say) costs nothing.
FACTS: dict[str, Callable[[Any], object]] = {
    NAMESPACES.group_kind: lambda subject: subject.metadata.labels,
    SERVICES.group_kind: lambda subject: subject.spec.selector,
    REPLICATION_CONTROLLERS.group_kind: lambda subject: subject.spec.selector,
    REPLICA_SETS.group_kind: lambda subject: subject.spec.selector,
    STATEFUL_SETS.group_kind: lambda subject: subject.spec.selector,
    POD_DISRUPTION_BUDGETS.group_kind: lambda subject: (
        subject.spec.selector,
        subject.status.disruptions_allowed,
        subject.status.disrupted_pods,
    ),
    PERSISTENT_VOLUMES.group_kind: lambda subject: (subject.spec, subject.status, _head_of(subject)),
    PERSISTENT_VOLUME_CLAIMS.group_kind: lambda subject: (
        *(subject.spec, subject.status, _head_of(subject), subject.metadata.owner_references),
    ),
    STORAGE_CLASSES.group_kind: lambda subject: (
        *(subject.provisioner, subject.volume_binding_mode, subject.allowed_topologies),
    ),
    CSI_NODES.group_kind: lambda subject: subject.spec,
    CSI_DRIVERS.group_kind: lambda subject: subject.spec,
    CSI_STORAGE_CAPACITIES.group_kind: lambda subject: (
        *(subject.storage_class_name, subject.node_topology, subject.capacity, subject.maximum_volume_size),
    ),
    VOLUME_ATTACHMENTS.group_kind: lambda subject: subject.spec,
}
_OWNERS = {REPLICATION_CONTROLLERS.group_kind, REPLICA_SETS.group_kind, STATEFUL_SETS.group_kind}
_READ_AT_EACH_DECISION = POD_DISRUPTION_BUDGETS.group_kind  # nothing compiled depends on budgets
_LONGEST_LOG = 1 << 20
_SPARE_TEMPLATES = 1 << 12  # of pods that are gone; each weighs some kilobytes


def _head_of(subject: Object) -> tuple[object, ...]:
    meta = subject.metadata
    return meta.uid, meta.labels, meta.annotations, meta.deletion_timestamp


class LiveSnapshot:
    def __init__(self, objects: Mirrored) -> None:
        self.objects = objects
        self._snapshot = Snapshot()
        self._nodes: dict[str, None] = {}  # names of nodes that came, went or changed since the last batch
        self._facts: dict[str, None] = {}  # kinds of facts that changed since
        self._owners: dict[OwnerKey, tuple[str, Key]] = {}  # those of them that own pods → group and kind, and key
        self._volumes: dict[str, dict[Key, None]] = {}  # claims, volumes and the like: group and kind → those changed
        self._latest: tuple[Pod, Template] | None = None

    def current(self) -> Snapshot:
        """The snapshot with every change so far in it."""
        if self._nodes:
            self._bring_nodes()
        if self._facts:
            self._bring_facts()
        if self._volumes:
            self._bring_volumes()
        if len(self._snapshot.log) > _LONGEST_LOG:
            self._snapshot.drop_views()
        return self._snapshot

    def note(self, group_kind: str, old: Object | None, new: Object | None) -> None:
        """An object other than a pod came (no `old`), changed or went (no `new`)."""
        subject = new or old
        assert subject is not None
        if group_kind == NODES.group_kind:
            self._nodes[subject.metadata.name] = None
        elif (reads := FACTS.get(group_kind)) and (old is None or new is None or reads(old) != reads(new)):
            if group_kind in VOLUME_TABLES:
                self._volumes.setdefault(group_kind, {})[key_of(subject)] = None
                return
            self._facts[group_kind] = None
            for owner in (old, new):
                if isinstance(owner, Owner):
                    self._owners[owner_key_of(owner)] = group_kind, key_of(owner)

    def check(self, subject: Object) -> None:
        """Raises what is wrong with an object that the engine could not count. Changes nothing that shows."""
        if isinstance(subject, Pod):
            if not subject.is_finished:
                self._snapshot.vector_of(self._intern(subject))
        elif isinstance(subject, Node):
            NodeRow(subject)

    def put(self, pod: Pod, node: str) -> None:
        """Count this pod on this node ("" for none yet) instead of wherever it was counted before."""
        snapshot, key = self._snapshot, pod.key
        if node in self._nodes and node not in snapshot.row_of:  # at the beginning: all nodes have come, then all pods
            self._bring_nodes()
        if pod.is_finished:
            self.remove(key)
        elif node in snapshot.row_of:
            self._place(key, pod, node)
        else:
            self.remove(key)
            if node:
                snapshot.stray[key] = (_unbound(pod), node)
            else:
                snapshot.pending[key] = pod

    def remove(self, key: str) -> None:
        self._snapshot.pending.pop(key, None)
        self._snapshot.stray.pop(key, None)
        if key in self._snapshot.pods:
            self._forget(key)

    def fork(self, objects: Mirrored) -> LiveSnapshot:
        copy = LiveSnapshot(objects)
        copy._snapshot = self.current().fork()
        return copy

    def _place(self, key: str, pod: Pod, node: str) -> None:
        snapshot = self._snapshot
        template, row, start = self._intern(pod), snapshot.row_of[node], pod.status.start_time or ""
        before = snapshot.pods.get(key)
        if before is not None and before.template is template and before.row == row:
            if before.start == start:
                return  # most events: something changed that no decision reads
            if not template.has_volumes:  # else what is known of its volumes may have changed, too
                snapshot.set_start(key, start)
                return
        self.remove(key)
        snapshot.assume_template(key, template, row, start)

    def _intern(self, pod: Pod) -> Template:
        if self._latest is None or self._latest[0] is not pod:  # a pod is checked, and counted right after that
            if len(self._snapshot.table) > _SPARE_TEMPLATES + 2 * len(self._snapshot.placed):
                self._snapshot.drop_unused_templates()
            self._latest = pod, self._snapshot.table.intern(pod)
        return self._latest[1]

    def _forget(self, key: str) -> None:
        """The engine, like kube-scheduler, frees a host port when the first of two holders goes. Here pods also share a
        node without the scheduler's consent, for years: a port stays taken as long as anyone holds it."""
        snapshot = self._snapshot
        template, row, _ = snapshot.forget(key)
        if template.ports:
            here = snapshot.on_row.get(row, {})
            held_ports = {port: None for other in here for port in snapshot.pods[other].template.ports}
            snapshot.restore_row(row, here, held_ports)

    def _bring_nodes(self) -> None:
        snapshot, known = self._snapshot, self.objects.get(NODES.group_kind, {})
        nodes = (known.get(Key("", name)) for name in self._nodes)
        changed = [NodeRow(node) for node in nodes if isinstance(node, Node)]
        gone = [name for name in self._nodes if name in snapshot.row_of and Key("", name) not in known]
        self._nodes.clear()
        self._set_adrift(gone)
        if len(gone) == 1:
            snapshot.remove_node(gone[0])
        elif gone:
            snapshot.set_nodes(node for node in known.values() if isinstance(node, Node))
        if changed:
            snapshot.put_row(*changed)

    def _set_adrift(self, gone: list[str]) -> None:
        """Pods of nodes that go wait for them as they are: left to the engine, each would become its template's pod."""
        snapshot, pods = self._snapshot, self.objects.get(PODS.group_kind, {})
        for name in gone:
            for key in list(snapshot.on_row.get(snapshot.row_of[name], ())):
                template = snapshot.forget(key).template
                own = pods.get(Key(*key.rsplit("/", 1)) if "/" in key else Key("", key))
                snapshot.stray[key] = (_unbound(own if isinstance(own, Pod) else template.pod), name)

    def _bring_facts(self) -> None:
        if self._facts.keys() <= _OWNERS | {_READ_AT_EACH_DECISION}:
            facts = self._snapshot.facts
            if self._owners:
                facts = replace_fields(facts, owners=self._update_owners())
            if _READ_AT_EACH_DECISION in self._facts:
                budgets = in_order(self.objects, [_READ_AT_EACH_DECISION]).pod_disruption_budgets
                facts = replace_fields(facts, budgets=read_budgets(budgets))
        else:
            kinds = (group_kind for group_kind in FACTS if group_kind not in VOLUME_TABLES)
            facts = replace_fields(read_facts(in_order(self.objects, kinds)), volumes=self._snapshot.facts.volumes)
        self._owners.clear()
        if list(self._facts) == [_READ_AT_EACH_DECISION]:
            self._snapshot.facts = facts
        else:
            self._snapshot.set_facts(facts)
        self._facts.clear()

    def _bring_volumes(self) -> None:
        """Bring in the claims and volumes that changed: a cluster has thousands, and binds them one by one."""
        changes = {
            group_kind: {key: self.objects.get(group_kind, {}).get(key) for key in keys}
            for group_kind, keys in self._volumes.items()
        }
        self._volumes.clear()
        self._snapshot.set_volumes(self._snapshot.facts.volumes.with_changes(changes))

    def _update_owners(self) -> LayeredDict[OwnerKey, Selector | None]:
        """What is known of those that own pods, where only some of them changed: a cluster has thousands."""
        owners = self._snapshot.facts.owners.fork()
        for owner_key, (group_kind, key) in self._owners.items():
            owner = self.objects.get(group_kind, {}).get(key)
            if isinstance(owner, Owner) and owner_key_of(owner) == owner_key:
                owners[owner_key] = owner_selector_of(owner)
            else:
                owners.pop(owner_key, None)
        return owners


def in_order(mirrored: Mirrored, kinds: Iterable[str]) -> Objects:
    """The objects of these kinds, each kind sorted by key: the same mirror gives the same answer, however it came."""
    objects = Objects()
    for group_kind in kinds:
        sorted_objects = sorted(mirrored.get(group_kind, {}).items(), key=_key)
        objects.of(group_kind).extend(subject for _, subject in sorted_objects)
    return objects


def _key(entry: tuple[Key, Object]) -> Key:
    return entry[0]


def _unbound(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=""))
