"""Where each kind lives in the API: group, version, plural, namespaced or not, and so its path.

Used by everything that speaks to a cluster. A resource also knows the struct that reads it, if we have one.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from wukong.api.kinds import CLUSTER_SCOPED, GROUPS, KINDS, plural, version_of


class Key(msgspec.Struct, frozen=True, order=True):
    """The name of an object within its kind. `namespace` is "" for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Resource(msgspec.Struct, frozen=True):
    kind: str
    version: str = "v1"
    group: str = ""
    plural: str = ""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """`/apis/apps/v1/namespaces/shop/deployments/web/scale`; without a namespace, all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *(quote(part, safe="") for part in (name, subresource) if part)]
        return "/".join(parts)


def _of(kind: str) -> Resource:
    return Resource(
        kind=kind,
        version=version_of(kind),
        group=GROUPS.get(kind, ""),
        plural=plural(kind),
        namespaced=kind not in CLUSTER_SCOPED,
    )


RESOURCES: dict[str, Resource] = {kind: _of(kind) for kind in KINDS}
LEASES = Resource(kind="Lease", group="coordination.k8s.io", plural="leases")
EVENTS = Resource(kind="Event", group="events.k8s.io", plural="events")
NODE_METRICS = Resource(kind="NodeMetrics", group="metrics.k8s.io", version="v1beta1", plural="nodes", namespaced=False)
