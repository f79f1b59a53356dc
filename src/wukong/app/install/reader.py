"""The rights of people who ask Wukong about a cluster: listing every kind that a snapshot keeps, node usage, and what
cluster-autoscaler tells of its node groups.

Called by `wukong manifests reader`. Made of the table of kinds, so that it grows with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.kinds import CONFIG_MAPS, KINDS, NODE_METRICS
from wukong.app.install.rbac import GROUP
from wukong.errors import InputError
from wukong.placement.node_groups.cluster import STATUS_KEY
from wukong.ports import Document

READER = "wukong-reader"


def build_reader(users: Iterable[str], groups: Iterable[str], accounts: Iterable[str]) -> list[Document]:
    """The role, and its binding if it is for anybody. Raises InputError for an account without its namespace."""
    subjects = [
        *({"apiGroup": GROUP, "kind": "User", "name": name} for name in users),
        *({"apiGroup": GROUP, "kind": "Group", "name": name} for name in groups),
        *map(_build_account_subject, accounts),
    ]
    role = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER},
        "rules": _build_rules(),
    }
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": READER},
        "subjects": subjects,
    }
    return [role, binding] if subjects else [role]


def _build_rules() -> list[Document]:
    """One for each API group, in the order of the table."""
    plurals: dict[str, list[str]] = {}
    for resource in (*(kind.resource for kind in KINDS if kind.snapshot is not None or kind.decides), NODE_METRICS):
        names = plurals.setdefault(resource.group, [])
        if resource.plural not in names:
            names.append(resource.plural)
    lists = [{"apiGroups": [group], "resources": names, "verbs": ["list"]} for group, names in plurals.items()]
    status = {"resources": [CONFIG_MAPS.plural], "resourceNames": [STATUS_KEY.name], "verbs": ["get"]}
    return [*lists, {"apiGroups": [CONFIG_MAPS.group], **status}]


def _build_account_subject(text: str) -> Document:
    namespace, colon, name = text.partition(":")
    if not (namespace and colon and name):
        raise InputError(f"--service-account: expected NAMESPACE:NAME, got {text!r:.100}.")
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}
