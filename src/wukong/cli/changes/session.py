"""A session with a cluster that is to be changed: requests, waiting, and questions to whoever sits there.

Verbs open one on a live cluster; tests make one of an embedded cluster. The course (course.py) cannot tell them apart.
Between two requests nothing runs: plans take all cores, and an interrupt reaches them at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

import msgspec

from wukong.api.resources import Key, Resource
from wukong.app.changes.observation import LiveObservation, Observation
from wukong.app.live import WallClock
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import ask
from wukong.ports import Clock, Cluster

T = TypeVar("T")
_MINOR = re.compile(r"v?1\.(\d{1,4})(?:\D.*)?")
Observe = Callable[[Resource, Key], AbstractAsyncContextManager[Observation]]


class Session(msgspec.Struct, frozen=True):
    cluster: Cluster
    clock: Clock
    observe: Observe
    runner: asyncio.Runner
    minor: int | None  # of the API server; None: nobody knows
    ask: Callable[[str], bool]

    def run(self, request: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(request)


@contextmanager
def open_session(source: Source) -> Iterator[Session]:
    """Raises InputError where the kubeconfig is wrong, ClusterError where nobody answers."""
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    with asyncio.Runner() as runner:
        kube = Kube(load(source.kubeconfig, source.context))
        try:
            minor = read_minor(runner.run(kube.version()))
            yield Session(kube, WallClock(), partial(LiveObservation, kube), runner, minor, ask)
        finally:
            runner.run(kube.__aexit__())


def read_minor(version: str) -> int | None:
    """35 of v1.35.8."""
    match = _MINOR.fullmatch(version)
    return int(match[1]) if match else None
