"""The components `wukong run` knows: which controllers each has, and exactly what it may do in the cluster.

The rules are what its service account gets; a test runs each component with them and fails if one is missing or unused.
"""

from __future__ import annotations

import msgspec

from wukong.api.placement import GROUP
from wukong.errors import InputError, nearest
from wukong.ports import Document


class Rule(msgspec.Struct, frozen=True):
    group: str
    resource: str
    verbs: tuple[str, ...]
    in_own_namespace: bool = False  # else in the whole cluster

    def document(self) -> Document:
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


class Component(msgspec.Struct, frozen=True):
    name: str
    controllers: tuple[str, ...]
    rules: tuple[Rule, ...]


LEADING = Rule("coordination.k8s.io", "leases", ("get", "create", "patch"), in_own_namespace=True)
METRICS_API = Rule("metrics.k8s.io", "nodes", ("list",))  # only with --metrics-api
POLICY = (
    Rule(GROUP, "placementpolicies", ("list", "watch")),
    Rule(GROUP, "clusterplacementpolicies", ("list", "watch")),
    Rule(GROUP, "placementpolicies/status", ("patch",)),
    Rule(GROUP, "clusterplacementpolicies/status", ("patch",)),
)
EXTENDER = (
    Rule("", "nodes", ("list", "watch")),
    Rule("", "pods", ("list", "watch")),
    Rule("", "namespaces", ("list", "watch")),
    Rule(GROUP, "placementpolicies", ("list", "watch")),
    Rule(GROUP, "clusterplacementpolicies", ("list", "watch")),
    Rule("events.k8s.io", "events", ("create", "patch")),
)
COMPONENTS: dict[str, Component] = {
    component.name: component
    for component in (
        Component("load", ("load",), (LEADING, Rule("", "nodes", ("list", "watch", "patch")))),
        Component("extender", (), EXTENDER),
        Component("policy", ("policy",), (LEADING, *POLICY)),
    )
}


def choose(names: str) -> list[Component]:
    """The components of a list such as "load,spot"."""
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen:
        raise InputError(f"--components: expected some of {', '.join(COMPONENTS)}, got none.")
    for name in chosen:
        if name not in COMPONENTS:
            known = ", ".join(COMPONENTS)
            raise InputError(f"--components: unknown component {name!r}.{nearest(name, COMPONENTS)} Known: {known}.")
    return [COMPONENTS[name] for name in dict.fromkeys(chosen)]
