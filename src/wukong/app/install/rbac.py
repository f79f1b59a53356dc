"""Service accounts and exactly the rights they need, derived from the rules the components name.

Used by extender.py and scheduler.py. No wildcard is ever written, and no rule that no component asks for.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.app.components import Rule
from wukong.app.install.settings import Settings, meta
from wukong.ports import Document

GROUP = "rbac.authorization.k8s.io"


def account(settings: Settings, name: str, component: str) -> Document:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(settings, name, component)}


def rights(settings: Settings, name: str, component: str, asked: Iterable[Rule]) -> list[Document]:
    """A role for the whole cluster and one for the own namespace, as far as rules ask for them."""
    rules = merged(asked)
    everywhere = [rule.document() for rule in rules if not rule.in_own_namespace]
    at_home = [rule.document() for rule in rules if rule.in_own_namespace]
    documents: list[Document] = []
    if everywhere:
        # Cluster-wide names carry the namespace, so that two installations do not take each other's.
        wide = f"{settings.namespace}:{name}"
        documents += [cluster_role(settings, wide, component, everywhere)]
        documents += [cluster_binding(settings, wide, component, role=wide, account=name)]
    if at_home:
        documents += [role(settings, name, component, at_home)]
        documents += [binding(settings, name, component, kind="Role", role=name, account=name)]
    return documents


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """One rule per resource and scope, its verbs in the order in which they were first asked for."""
    verbs: dict[tuple[str, str, bool], dict[str, None]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource, rule.in_own_namespace), {}).update(dict.fromkeys(rule.verbs))
    return [Rule(group, resource, tuple(asked), home) for (group, resource, home), asked in verbs.items()]


def cluster_role(settings: Settings, name: str, component: str, rules: list[Document]) -> Document:
    about = meta(settings, name, component, is_namespaced=False)
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": about, "rules": rules}


def role(settings: Settings, name: str, component: str, rules: list[Document]) -> Document:
    about = meta(settings, name, component)
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": about, "rules": rules}


def cluster_binding(settings: Settings, name: str, component: str, *, role: str, account: str) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta(settings, name, component, is_namespaced=False),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(settings, account)],
    }


def binding(
    settings: Settings, name: str, component: str, *, kind: str, role: str, account: str, namespace: str = ""
) -> Document:
    """Of a role of the own namespace, unless another is named."""
    about = meta(settings, name, component)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {**about, "namespace": namespace or settings.namespace},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [_subject(settings, account)],
    }


def _subject(settings: Settings, account: str) -> Document:
    return {"kind": "ServiceAccount", "name": account, "namespace": settings.namespace}
