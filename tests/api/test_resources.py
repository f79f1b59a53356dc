"""Where an API server has its objects, and how kinds are named with their groups."""

from __future__ import annotations

import pytest

from wukong.api.kinds import DEPLOYMENTS, NODES, PODS
from wukong.api.meta import OwnerReference
from wukong.api.resources import Resource, group_kind, group_of, plural_of, refers_to


@pytest.mark.parametrize(
    ("resource", "place", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("shop",), "/api/v1/namespaces/shop/pods"),
        (PODS, ("shop", "web"), "/api/v1/namespaces/shop/pods/web"),
        (PODS, ("shop", "web", "status"), "/api/v1/namespaces/shop/pods/web/status"),
        (DEPLOYMENTS, ("shop", "web", "scale"), "/apis/apps/v1/namespaces/shop/deployments/web/scale"),
        (DEPLOYMENTS, (), "/apis/apps/v1/deployments"),
        (NODES, (), "/api/v1/nodes"),
        (NODES, ("", "n1"), "/api/v1/nodes/n1"),
        (NODES, ("shop", "n1"), "/api/v1/nodes/n1"),  # it has no namespace, whatever is said
        (PODS, ("a/b", "c?d"), "/api/v1/namespaces/a%2Fb/pods/c%3Fd"),
    ],
)
def test_an_object_has_its_place_on_the_server(resource: Resource, place: tuple[str, ...], path: str) -> None:
    assert resource.path(*place) == path


def test_kinds_are_named_with_their_groups() -> None:
    assert (group_kind("Pod"), group_kind("Deployment", "apps")) == ("Pod", "Deployment.apps")
    assert (PODS.group_kind, DEPLOYMENTS.group_kind) == ("Pod", "Deployment.apps")
    assert (PODS.api_version, DEPLOYMENTS.api_version) == ("v1", "apps/v1")
    assert [group_of(version) for version in ("v1", "apps/v1", "")] == ["", "apps", ""]
    assert [plural_of(kind) for kind in ("Node", "PriorityClass")] == ["nodes", "priorityclasses"]


@pytest.mark.parametrize(
    ("kind", "api_version", "expected"),
    [
        ("Deployment", "apps/v1", True),
        ("Deployment", "apps/v1beta1", True),
        ("Deployment", "", True),
        ("Deployment", "example.com/v1", False),
        ("Deployment", "v1", False),
        ("Pod", "apps/v1", False),
    ],
)
def test_an_owner_is_of_a_kind_by_its_group(kind: str, api_version: str, expected: bool) -> None:
    assert refers_to(OwnerReference(kind=kind, api_version=api_version, name="a", uid="u"), DEPLOYMENTS) == expected
