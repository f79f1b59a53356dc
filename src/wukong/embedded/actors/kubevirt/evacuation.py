"""virt-controller's evacuation controller: migrates instances that are to leave a node. Its keys are nodes.

An instance is to leave when its eviction was asked for (`evacuationNodeName`, set by the webhook) or when its node has
the taint `kubevirt.io/drain:NoSchedule`. Follows pkg/virt-controller/watch/drain/evacuation of KubeVirt 1.7: as many as
there are free places, 5 in the cluster and 2 from a node; where there are none it looks again after 5 s, where there
are instances that cannot migrate, after a minute. KubeVirt takes candidates as its cache happens to list them; here the
order is drawn by the seed.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Create, Outcome
from wukong.api.kinds import NODES, PODS, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.kubevirt import instance_status
from wukong.embedded.actors.kubevirt.expectations import Expectations
from wukong.embedded.actors.kubevirt.launcher_keys import of_launchers
from wukong.embedded.actors.kubevirt.migration_index import MigrationIndex
from wukong.embedded.actors.kubevirt.migrations import BUSY_SECONDS, MOST_FROM_NODE, MOST_IN_CLUSTER
from wukong.embedded.actors.kubevirt.node_index import InstancesByNode
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import Watch, each_side

DRAIN_TAINT = "kubevirt.io/drain"
_WARNING_SECONDS = 60.0


def _node_of_instance(instance: Object, _: State) -> Iterable[Key]:
    assert isinstance(instance, VirtualMachineInstance)
    node = instance.status.node_name
    return (Key("", node),) if node else ()


def _node_of_migration(migration: Object, state: State) -> Iterable[Key]:
    """The node from which somebody's instance migrates."""
    assert isinstance(migration, VirtualMachineInstanceMigration)
    if node := migration.metadata.annotations.get(names.EVACUATION_ANNOTATION):
        return (Key("", node),)
    instance = state.get(VirtualMachineInstance, Key(migration.metadata.namespace, migration.spec.vmi_name))
    return _node_of_instance(instance, state) if instance is not None else ()


_nodes_of_migration = each_side(_node_of_migration)


def _node_of_launcher(pod: Object, state: State) -> Iterable[Key]:
    """The node of the instance whose pod this is: one of two pods that ends makes it a candidate again."""
    name = pod.metadata.annotations.get(names.DOMAIN_ANNOTATION) or ""
    instance = state.get(VirtualMachineInstance, Key(pod.metadata.namespace, name))
    return _node_of_instance(instance, state) if instance is not None else ()


def _own_key_of_node(change: Change, state: State) -> Iterable[Key]:
    return (change.key,) if state.of(VirtualMachineInstance) else ()


class Evacuation:
    name = "virt-evacuation"

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance or Chance()
        self.watches = (
            Watch(NODES, _own_key_of_node),
            Watch(VIRTUAL_MACHINE_INSTANCES, each_side(_node_of_instance)),
            Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, self._find_keys_of_migration),
            Watch(PODS, of_launchers(_node_of_launcher)),
        )
        self._expectations = Expectations()  # of migrations

    def copy_memory(self, source: Evacuation, _: State) -> None:
        self._expectations.copy_memory(source._expectations)

    def _find_keys_of_migration(self, change: Change, state: State) -> Iterable[Key]:
        """The node from which an instance migrates. A migration that shows for the first time is not expected more."""
        new = change.new if change.old is None else None
        if new is not None and (node := new.metadata.annotations.get(names.EVACUATION_ANNOTATION)):
            self._expectations.observe(Key("", node))
        return _nodes_of_migration(change, state)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if (left := self._expectations.seconds_left(key, state.attempts.get(self.name, key), now)) > 0:
            return Outcome(requeue_after=left)
        node = state.get(Node, key)
        instances = state.index_of(InstancesByNode).on_node(key.name, state) if node is not None else []
        leaving = [instance for instance in instances if _is_to_leave(instance)]
        if node is not None and _has_drain_taint(node):
            leaving = instances
        if not leaving:
            return DONE
        unfinished = state.index_of(MigrationIndex).list_unfinished(state)
        candidates, stuck = _sort_out(leaving, unfinished, state)
        if not candidates and not stuck:
            return DONE
        free = _count_free_places(instances, state)
        if free <= 0:
            return Outcome(requeue_after=BUSY_SECONDS)
        candidates.sort(key=lambda instance: self._chance.share(instance.metadata.uid))
        selected = candidates[:free]
        reported = stuck[: free - len(selected)]
        notes = [
            note_about(VIRTUAL_MACHINE_INSTANCES, instance, "FailedCreate", "VirtualMachineInstance is not migrateable")
            for instance in reported
        ]
        wait = _WARNING_SECONDS if reported and not selected else None
        if selected:
            self._expectations.expect(key, len(selected), now)
        return Outcome((*notes, *(_create_migration(instance, key.name) for instance in selected)), wait)


def _is_to_leave(instance: VirtualMachineInstance) -> bool:
    leaves = instance.status.evacuation_node_name
    return bool(leaves) and leaves == instance.status.node_name and not instance_status.is_migrating(instance)


def _has_drain_taint(node: Node) -> bool:
    return any((taint.key, taint.effect) == (DRAIN_TAINT, "NoSchedule") for taint in node.spec.taints)


def _sort_out(
    leaving: list[VirtualMachineInstance], unfinished: list[VirtualMachineInstanceMigration], state: State
) -> tuple[list[VirtualMachineInstance], list[VirtualMachineInstance]]:
    """Those that can be migrated now, and those that should be and cannot."""
    migrating = {Key(migration.metadata.namespace, migration.spec.vmi_name) for migration in unfinished}
    candidates, stuck = [], []
    for instance in leaving:
        if instance_status.is_final(instance) or instance.metadata.deletion_timestamp is not None:
            continue
        strategy, is_migratable = instance.spec.get("evictionStrategy"), instance_status.is_migratable(instance)
        if strategy != "LiveMigrate" and not (strategy == "LiveMigrateIfPossible" and is_migratable):
            continue
        if not is_migratable:
            stuck.append(instance)
        elif key_of(instance) not in migrating and instance_status.count_active_pods(instance, state) <= 1:
            candidates.append(instance)
    return candidates, stuck


def _count_free_places(instances: list[VirtualMachineInstance], state: State) -> int:
    running = state.index_of(MigrationIndex).list_running(state)
    here = {instance.metadata.name for instance in instances}
    from_node = sum(migration.spec.vmi_name in here for migration in running)
    return min(MOST_IN_CLUSTER - len(running), MOST_FROM_NODE - from_node)


def _create_migration(instance: VirtualMachineInstance, node: str) -> Create:
    meta: Document = {
        "generateName": "kubevirt-evacuation-",
        "namespace": instance.metadata.namespace,
        "annotations": {names.EVACUATION_ANNOTATION: node},
    }
    body = {"metadata": meta, "spec": {"vmiName": instance.metadata.name}}
    return Create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, instance.metadata.namespace)
