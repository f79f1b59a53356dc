"""Every test of this folder runs on every implementation of `wukong.ports.Cluster`. This is the place to add one."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import pytest

from small_cluster import a_small_cluster
from testbed.pytest_plugin import Bed, make_namespace, remove, to_the_end
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.layers import Recording
from wukong.ports import Cluster

WATCH_SECONDS = 8  # the API server sends a bookmark two seconds before it ends a watch, otherwise once a minute
EMBEDDED_NAMESPACE = "conformance"


class Implementation(NamedTuple):
    """How to open a cluster, which fixture gives a fresh namespace of it where pods are welcome, and how to mark it."""

    open: Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Cluster]]
    namespace_fixture: str
    marks: tuple[pytest.MarkDecorator, ...] = ()


def a_real_one(request: pytest.FixtureRequest) -> Kube:
    return Kube(load(str(request.getfixturevalue("bed").kubeconfig)), watch_seconds=WATCH_SECONDS)


@pytest.fixture
def bed_namespace(bed: Bed) -> Iterator[str]:
    """As the test bed's own `namespace`, which the one below hides.

    What makes or is a pod is deleted afterwards, and the rest is left to the end of the cluster: of a whole namespace
    Kubernetes deletes every kind that there may be, which takes more than most of the cases.
    """
    name = f"conformance-{secrets.token_hex(4)}"
    asyncio.run(make_namespace(bed, name))
    yield name
    paths = ("apis/apps/v1/namespaces/{}/deployments", "api/v1/namespaces/{}/pods")
    asyncio.run(remove(bed, [f"/{path.format(name)}" for path in paths]))


def an_embedded_one(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Cluster]:
    """The embedded API server, with the few actors that cases wait for (see small_cluster.py)."""
    return a_small_cluster(EMBEDDED_NAMESPACE)


@asynccontextmanager
async def a_recorded_one(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The embedded API server inside a layer that records what is written: nobody can tell them apart."""
    async with a_small_cluster(EMBEDDED_NAMESPACE) as store:
        yield Recording(store, lambda action, error: None)


@pytest.fixture
def embedded_namespace() -> str:
    """Made with the cluster, which every test has for itself."""
    return EMBEDDED_NAMESPACE


IMPLEMENTATIONS = {
    "kube": Implementation(a_real_one, "bed_namespace", (pytest.mark.control_plane,)),
    "embedded": Implementation(an_embedded_one, "embedded_namespace"),
    "recorded": Implementation(a_recorded_one, "embedded_namespace"),
}


@pytest.fixture(params=[pytest.param(name, marks=value.marks) for name, value in IMPLEMENTATIONS.items()])
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
def cluster(request: pytest.FixtureRequest, implementation: Implementation) -> AbstractAsyncContextManager[Cluster]:
    """Opened for the test, and closed after it, by the hook below: both belong into the test's own loop."""
    return implementation.open(request)


@pytest.fixture
def namespace(request: pytest.FixtureRequest, implementation: Implementation) -> str:
    return str(request.getfixturevalue(implementation.namespace_fixture))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(to_the_end(in_open_cluster(pyfuncitem.obj, arguments)))
    return True


async def in_open_cluster(test: Callable[..., Any], arguments: dict[str, Any]) -> None:
    async with arguments["cluster"] as opened:
        await test(**{**arguments, "cluster": opened})
