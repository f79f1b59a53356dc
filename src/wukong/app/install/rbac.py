"""Service accounts and exactly the rights they need, derived from the permissions that components name.

Used by the components that can be installed. No wildcard is ever written, and no rule that no component needs.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.app.install.installation import Installation, meta
from wukong.app.permissions import Permission, merge_permissions
from wukong.ports import Document

GROUP = "rbac.authorization.k8s.io"


def account(installation: Installation, name: str, component: str) -> Document:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(installation, name, component)}


def rights(installation: Installation, name: str, component: str, needed: Iterable[Permission]) -> list[Document]:
    """A role for the whole cluster and one for the own namespace, as far as permissions ask for them."""
    permissions = merge_permissions(needed)
    everywhere = [permission.document() for permission in permissions if not permission.in_own_namespace]
    at_home = [permission.document() for permission in permissions if permission.in_own_namespace]
    documents: list[Document] = []
    if everywhere:
        # Cluster-wide names carry the namespace, so that two installations do not take each other's.
        wide = f"{installation.namespace}:{name}"
        documents += [cluster_role(installation, wide, component, everywhere)]
        documents += [cluster_binding(installation, wide, component, role=wide, account=name)]
    if at_home:
        documents += [role(installation, name, component, at_home)]
        documents += [binding(installation, name, component, kind="Role", role=name, account=name)]
    return documents


def cluster_role(installation: Installation, name: str, component: str, rules: list[Document]) -> Document:
    about = meta(installation, name, component, is_namespaced=False)
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": about, "rules": rules}


def role(installation: Installation, name: str, component: str, rules: list[Document]) -> Document:
    about = meta(installation, name, component)
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": about, "rules": rules}


def cluster_binding(installation: Installation, name: str, component: str, *, role: str, account: str) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta(installation, name, component, is_namespaced=False),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(installation, account)],
    }


def binding(
    installation: Installation, name: str, component: str, *, kind: str, role: str, account: str, namespace: str = ""
) -> Document:
    """Of a role of the own namespace, unless another is named."""
    about = meta(installation, name, component)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {**about, "namespace": namespace or installation.namespace},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [_subject(installation, account)],
    }


def _subject(installation: Installation, account: str) -> Document:
    return {"kind": "ServiceAccount", "name": account, "namespace": installation.namespace}
