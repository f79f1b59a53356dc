"""Permissions: what RBAC must grant a component, as values. Components name them, app.install writes them as roles.

A test runs each component with exactly its permissions and fails if one is missing or unused.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wukong.ports import Document

LEASE_NAME = "wukong"  # of the Lease by which instances elect a leader, unless told otherwise


class Permission(msgspec.Struct, frozen=True):
    group: str
    resource: str
    verbs: tuple[str, ...]
    in_own_namespace: bool = False  # else in the whole cluster
    names: tuple[str, ...] = ()  # of the only objects that it is about; () for all

    def build_rule(self) -> Document:
        """One rule of a Role or ClusterRole."""
        rule: Document = {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


def list_lease_permissions(name: str = LEASE_NAME) -> tuple[Permission, ...]:
    """What a leader needs: its own Lease and no other. RBAC cannot grant creating by name: it knows none yet."""
    group, resource = "coordination.k8s.io", "leases"
    return (
        Permission(group, resource, ("create",), in_own_namespace=True),
        Permission(group, resource, ("get", "patch"), in_own_namespace=True, names=(name,)),
    )


def merge_permissions(permissions: Iterable[Permission]) -> list[Permission]:
    """One permission per resource, scope and names, its verbs in the order in which they were first named."""
    verbs: dict[tuple[str, str, bool, tuple[str, ...]], dict[str, None]] = {}
    for permission in permissions:
        scope = (permission.group, permission.resource, permission.in_own_namespace, permission.names)
        verbs.setdefault(scope, {}).update(dict.fromkeys(permission.verbs))
    return [
        Permission(group, resource, tuple(merged), is_own, names)
        for (group, resource, is_own, names), merged in verbs.items()
    ]
