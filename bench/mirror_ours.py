"""Wukong's side of the bench of mirrors, a process of its own each time: `python -m bench.mirror_ours list KUBECONFIG`.

Prints one JSON object with its figures. mirror.py runs it, and mirror_theirs.py does the same with the official client.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from bench.building import peak_megabytes
from wukong.api.core import Node, Pod
from wukong.api.kinds import KINDS, PODS
from wukong.api.resources import Key
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.ports import Event, Listing, WatchUpdate
from wukong.state import State

AT_ONCE = 16
T = TypeVar("T", bound=Node | Pod)


async def list_all(kube: Kube) -> dict[str, float]:
    """Until every node and pod is in the mirror, and the snapshot that decisions are made on is built."""
    state, base, began = State(), peak_megabytes(), time.perf_counter()
    await asyncio.gather(_sync(kube, state, Node), _sync(kube, state, Pod))
    synced = time.perf_counter() - began
    counted = len(state.snapshot.pods)
    return {
        "seconds": synced,
        "snapshot_seconds": time.perf_counter() - began - synced,
        "objects": sum(len(found) for found in state.objects.values()),
        "counted": counted,
        "mb": peak_megabytes() - base,
        "peak_mb": peak_megabytes(),
    }


async def _sync(kube: Kube, state: State, read: type[T]) -> None:
    news = follow(kube, KINDS.resource_named(read.__name__), read)
    async with aclosing(news):
        await _take_list(news, state, read)


async def _take_list(news: AsyncIterator[WatchUpdate[T]], state: State, read: type[T]) -> None:
    async for page in news:
        assert isinstance(page, Listing), page
        state.take_page(read.__name__, page.items, is_first=page.is_first, is_last=page.is_last)
        if page.is_last:
            break


async def watch(kube: Kube, count: int) -> dict[str, float]:
    """So many changes, made after the list and before the watch begins: they come as fast as we take them."""
    state, news = State(), follow(kube, PODS, Pod)
    async with aclosing(news):
        await _take_list(news, state, Pod)
        print("listed", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        seen, began, worked = 0, time.perf_counter(), time.process_time()
        async for change in news:
            assert isinstance(change, Event), "the server has forgotten the changes"
            seen += len(state.apply(change.type, change.object, "Pod"))
            if seen == count:
                break
        return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}


async def act(names: list[str], do: Callable[[str], Awaitable[None]]) -> dict[str, float]:
    left, began = iter(names), time.perf_counter()

    async def work() -> None:
        for name in left:
            await do(name)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return {"seconds": time.perf_counter() - began}


async def main(verb: str, kubeconfig: str, rest: list[str]) -> None:
    async with Kube(load(kubeconfig)) as kube:
        await kube.version()  # connected
        match verb:
            case "list":
                figures = await list_all(kube)
            case "watch":
                figures = await watch(kube, int(rest[0]))
            case "bind":
                figures = await act(rest[1:], lambda name: kube.bind(Key("default", name), rest[0]))
            case _:
                figures = await act(rest[1:], lambda name: kube.evict(Key("default", name)))
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
