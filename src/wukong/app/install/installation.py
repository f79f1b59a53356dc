"""What every installation in a cluster has in common: image, namespace, replicas, and the labels of its objects.

A component that is installed by a command of its own derives from it. Nothing here is a document.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.api.quantity import parse_quantity
from wukong.app.component import Component
from wukong.errors import InputError
from wukong.ports import Document

NAMESPACE = "wukong-system"
SHARED_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    image: str
    components: tuple[Component[Any], ...]  # what the pods run
    namespace: str = NAMESPACE
    replicas: int = 2
    memory: str = "256Mi"  # requested for each pod
    memory_limit: str = "1Gi"  # a mirror needs 50 MB, and about 4 kB for each pod of the cluster


def build_meta(installation: Installation, name: str, component: str, *, is_namespaced: bool = True) -> Document:
    """Metadata with the labels that Kubernetes recommends."""
    namespace = {"namespace": installation.namespace} if is_namespaced else {}
    return {"name": name, **namespace, "labels": labels_of(component)}


def labels_of(component: str) -> dict[str, str]:
    """Also what selectors ask for: none of them changes with a version, as a Deployment's selector never may."""
    return {"app.kubernetes.io/name": "wukong", "app.kubernetes.io/component": component}


def find_namespace_problems(installation: Installation) -> Iterator[str]:
    if installation.namespace in SHARED_NAMESPACES:
        why = "it gets the Pod Security level restricted, which would keep out pods of others"
        got = f"got {installation.namespace!r}"
        yield f"--namespace: expected one of Wukong's own, {got}: {why}. Try {NAMESPACE}."


def find_memory_problems(installation: Installation) -> Iterator[str]:
    amounts: dict[str, int] = {}
    for option, quantity in (("--memory", installation.memory), ("--memory-limit", installation.memory_limit)):
        try:
            amounts[option] = parse_quantity(quantity)
        except InputError as error:
            yield from error.at(option).problems
            continue
        if amounts[option] <= 0:
            yield f'{option}: expected an amount of memory such as "1Gi", got {quantity!r}.'
    if len(amounts) == 2 and amounts["--memory-limit"] < amounts["--memory"]:
        got = f"got {installation.memory_limit!r} and --memory {installation.memory!r}"
        yield f"--memory-limit: expected no less than is requested, {got}. Raise it, or lower --memory."


def is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
