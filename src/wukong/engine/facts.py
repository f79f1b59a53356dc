"""What a decision reads from the cluster besides nodes and placed pods: namespaces, selectors, volumes, budgets.

An immutable value, replaced as a whole when one of these objects changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wukong.api.apps import PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.core import ReplicationController
from wukong.api.objects import Objects
from wukong.engine.layered_dict import LayeredDict
from wukong.engine.template import Template
from wukong.engine.volume_facts import VolumeFacts, read_volume_facts
from wukong.semantics.selectors import Selector, compile_selector, require_labels, selects

Owner = ReplicationController | ReplicaSet | StatefulSet
OwnerKey = tuple[str, str, str, str]  # its namespace, apiVersion, kind and name


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget as preemption sees it."""

    namespace: str
    selector: Selector | None
    allowed: int
    disrupted: frozenset[str]
    name: str = ""


@dataclass(frozen=True)
class Facts:
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)  # name → labels
    services: dict[str, list[Selector]] = field(default_factory=dict)  # namespace → selectors
    owners: LayeredDict[OwnerKey, Selector | None] = field(default_factory=LayeredDict)
    budgets: tuple[Budget, ...] = ()
    volumes: VolumeFacts = field(default_factory=VolumeFacts)

    def labels_of(self, namespace: str) -> dict[str, str]:
        return self.namespaces.get(namespace, {})

    def default_selector_of(self, template: Template) -> Selector:
        """Who counts as "the same application": the pod's services and its owning workload, taken together."""
        merged: dict[str, frozenset[str]] = {}
        for selector in self.services.get(template.namespace, []):
            if selects(selector, template.labels):
                merged.update({key: values for key, _, values in selector})
        selector = tuple((key, "In", values) for key, values in sorted(merged.items()))
        if template.owner is None:
            return selector
        return selector + (self.owners.get((template.namespace, *template.owner)) or ())


def read_facts(objects: Objects) -> Facts:
    services: dict[str, list[Selector]] = {}
    for service in objects.services:
        if service.spec.selector is not None:
            services.setdefault(service.metadata.namespace, []).append(require_labels(service.spec.selector))
    return Facts(
        namespaces={entry.metadata.name: entry.metadata.labels for entry in objects.namespaces},
        services=services,
        owners=_read_owners(objects),
        budgets=read_budgets(objects.pod_disruption_budgets),
        volumes=read_volume_facts(objects),
    )


def read_budgets(budgets: Iterable[PodDisruptionBudget]) -> tuple[Budget, ...]:
    return tuple(
        Budget(
            entry.metadata.namespace,
            compile_selector(entry.spec.selector),
            entry.status.disruptions_allowed,
            frozenset(entry.status.disrupted_pods),
            entry.metadata.name,
        )
        for entry in budgets
    )


def owner_key_of(owner: Owner) -> OwnerKey:
    """What names this object in `Facts.owners`."""
    meta = owner.metadata
    if isinstance(owner, ReplicationController):
        return meta.namespace, "v1", "ReplicationController", meta.name
    return meta.namespace, "apps/v1", owner.kind, meta.name


def owner_selector_of(owner: Owner) -> Selector | None:
    if isinstance(owner, ReplicationController):
        return require_labels(owner.spec.selector)
    return compile_selector(owner.spec.selector)


def _read_owners(objects: Objects) -> LayeredDict[OwnerKey, Selector | None]:
    owners: tuple[Owner, ...] = (*objects.replication_controllers, *objects.replica_sets, *objects.stateful_sets)
    return LayeredDict((owner_key_of(owner), owner_selector_of(owner)) for owner in owners)
