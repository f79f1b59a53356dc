"""How much of each node is in use, for verbs that ask once: of Prometheus, metrics.k8s.io, or the nodes' own labels.

Used by explain.py. What nobody knows stays out: rules are neutral about it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from wukong.api.core import Node
from wukong.api.usage import NodeUsage
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import note
from wukong.controllers.load.usage_labels import usage_of_labels
from wukong.errors import ClusterError


def measure(source: Source, nodes: Iterable[Node], prometheus: str, now: float) -> list[NodeUsage]:
    """Whatever --prometheus names must answer. A cluster without metrics.k8s.io, and a snapshot, have their labels."""
    if prometheus:
        return asyncio.run(_ask_prometheus(prometheus))
    if source.snapshot is None:
        try:
            return asyncio.run(_ask_cluster(source))
        except ClusterError as error:
            note(f"usage is read from node labels: {str(error).rstrip('.')}.")
    return usage_of_labels(nodes, now)


async def _ask_cluster(source: Source) -> list[NodeUsage]:
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube
    from wukong.cluster.meters import MetricsApi

    async with Kube(load(source.kubeconfig, source.context)) as kube:
        return await MetricsApi(kube, time.time, _note_skipped()).measure()


async def _ask_prometheus(url: str) -> list[NodeUsage]:
    import aiohttp

    from wukong.cluster.meters import Prometheus

    async with aiohttp.ClientSession(trust_env=True) as session:
        return await Prometheus(url, session=session, on_skip=_note_skipped()).measure()


def _note_skipped() -> Callable[[str], None]:
    """Tells of the first sample that makes no sense; a meter that is in another unit has one for each node."""
    problems: list[str] = []

    def tell(problem: str) -> None:
        if not problems:
            note(f"usage that makes no sense is left out: {problem.rstrip('.')}.")
        problems.append(problem)

    return tell
