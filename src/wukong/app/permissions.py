"""Permissions: what RBAC must grant a component, as values. Components name them, app.install writes them as roles.

A test runs each component with exactly its permissions and fails if one is missing or unused.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wukong.ports import Document


class Permission(msgspec.Struct, frozen=True):
    group: str
    resource: str
    verbs: tuple[str, ...]
    in_own_namespace: bool = False  # else in the whole cluster

    def document(self) -> Document:
        """One rule of a Role or ClusterRole."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}


LEASE = Permission("coordination.k8s.io", "leases", ("get", "create", "patch"), in_own_namespace=True)


def merge_permissions(permissions: Iterable[Permission]) -> list[Permission]:
    """One permission per resource and scope, its verbs in the order in which they were first named."""
    verbs: dict[tuple[str, str, bool], dict[str, None]] = {}
    for permission in permissions:
        scope = (permission.group, permission.resource, permission.in_own_namespace)
        verbs.setdefault(scope, {}).update(dict.fromkeys(permission.verbs))
    return [Permission(group, resource, tuple(named), is_own) for (group, resource, is_own), named in verbs.items()]
