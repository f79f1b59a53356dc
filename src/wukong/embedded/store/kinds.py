"""The kinds the store serves: Kubernetes' own that Wukong knows, and those that CustomResourceDefinitions add.

Says of each kind what differs from kind to kind: subresources, what a generation counts, field selectors, whether a
deletion may be graceful. Whoever asks for another kind is told, as by a real server, that there is no such resource.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.crds import Schema
from wukong.api.kinds import OURS
from wukong.api.resources import EVENTS, LEASES, RESOURCES, Resource
from wukong.embedded.store.api_errors import no_such_kind
from wukong.ports import Document

CONFIG_MAPS = Resource(kind="ConfigMap", plural="configmaps")
SECRETS = Resource(kind="Secret", plural="secrets")
SERVICE_ACCOUNTS = Resource(kind="ServiceAccount", plural="serviceaccounts")
DEFINITIONS = Resource(
    kind="CustomResourceDefinition", group="apiextensions.k8s.io", plural="customresourcedefinitions", namespaced=False
)
PODS = RESOURCES["Pod"]
NAMESPACES = RESOURCES["Namespace"]
BUDGETS = RESOURCES["PodDisruptionBudget"]

_WITH_SCALE = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"})
_WITHOUT_STATUS = frozenset(
    {"ConfigMap", "Secret", "ServiceAccount", "Event", "Lease", "PriorityClass"}
)  # and so nothing that a status subresource would write
_COUNTED = frozenset(
    {*_WITH_SCALE, "Pod", "DaemonSet", "PodDisruptionBudget", "PriorityClass", "CustomResourceDefinition"}
)
_NAME_AND_NAMESPACE = frozenset({"metadata.name", "metadata.namespace"})
_MORE_FIELDS: dict[str, frozenset[str]] = {
    "Pod": frozenset(
        {
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
            "status.phase", "status.podIP", "status.nominatedNodeName",
        }
    ),
    "Node": frozenset({"spec.unschedulable"}),
    "Namespace": frozenset({"status.phase"}),
    "ReplicationController": frozenset({"status.replicas"}),
    "ReplicaSet": frozenset({"status.replicas"}),
    "Service": frozenset({"spec.clusterIP", "spec.type"}),
    "Secret": frozenset({"type"}),
    "Event": frozenset({
        "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "reason", "type",
        "reportingController",
    }),
}  # fmt: skip


class Kind(msgspec.Struct, frozen=True):
    resource: Resource
    has_status: bool = True
    has_scale: bool = False
    is_counted: bool = True  # has a generation
    fields: frozenset[str] = _NAME_AND_NAMESPACE
    schema: Schema | None = None  # of a CustomResourceDefinition
    since: int = 0  # the version before which no watch of this kind can begin

    @property
    def name(self) -> str:
        """`pods`, `deployments.apps`: as in messages, and as the key of its objects."""
        return f"{self.resource.plural}.{self.resource.group}" if self.resource.group else self.resource.plural

    @property
    def title(self) -> str:
        """`Pod`, `Deployment.apps`: as in messages about what is wrong with one."""
        return f"{self.resource.kind}.{self.resource.group}" if self.resource.group else self.resource.kind

    @property
    def is_custom(self) -> bool:
        return self.schema is not None

    @property
    def is_graceful(self) -> bool:
        """Of the kinds here only a pod has a kubelet to wait for."""
        return self.resource == PODS


class Kinds:
    """Looked up by group, version and plural, for that is what a path says."""

    def __init__(self) -> None:
        more = [CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, DEFINITIONS, LEASES, EVENTS]
        known = [resource for kind, resource in RESOURCES.items() if kind not in OURS]
        self._served: dict[tuple[str, str, str], Kind] = {}
        for resource in [*known, *more]:
            self.add(_built_in(resource))

    def of(self, resource: Resource) -> Kind:
        found = self._served.get((resource.group, resource.version, resource.plural))
        if found is None:
            raise no_such_kind()
        return found

    def add(self, kind: Kind) -> None:
        self._served[(kind.resource.group, kind.resource.version, kind.resource.plural)] = kind

    def remove(self, kind: Kind) -> None:
        del self._served[(kind.resource.group, kind.resource.version, kind.resource.plural)]

    def __iter__(self) -> Iterator[Kind]:
        return iter(sorted(self._served.values(), key=lambda kind: kind.name))

    def by_owner(self, api_version: str, kind: str) -> Kind | None:
        """What an ownerReference names, whatever its version."""
        group = api_version.rpartition("/")[0]
        return next((each for each in self if (each.resource.group, each.resource.kind) == (group, kind)), None)


def custom(definition: Document, since: int) -> list[Kind]:
    """The kinds that a CustomResourceDefinition adds, one for each version it serves."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            resource=Resource(
                kind=names["kind"],
                version=version["name"],
                group=spec["group"],
                plural=names["plural"],
                namespaced=spec.get("scope") != "Cluster",
            ),
            has_status="status" in (version.get("subresources") or {}),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            since=since,
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _built_in(resource: Resource) -> Kind:
    return Kind(
        resource=resource,
        has_status=resource.kind not in _WITHOUT_STATUS,
        has_scale=resource.kind in _WITH_SCALE,
        is_counted=resource.kind in _COUNTED,
        fields=_NAME_AND_NAMESPACE | _MORE_FIELDS.get(resource.kind, frozenset()),
    )
