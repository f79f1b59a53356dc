"""A mirror fed by the runtime's own loop, for the bench of memory: `python -m bench.memory.mirror PORT`.

Prints one JSON object: the resident memory before, once all is listed, once the snapshot that decisions are made on has
been asked for, the most of it during a list that comes again, and after it. Runs on earlier checkouts, too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import time
from pathlib import Path

import aiohttp

from wukong.api.kinds import NODES, PODS
from wukong.cluster.credentials import Credentials
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.cluster.list_watch import follow
from wukong.runtime import Loop
from wukong.state.controller import Watch

_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class WallClock:
    def now(self) -> float:
        return time.time()


def read_kilobytes(name: str) -> float:
    line = next(line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name))
    return float(line.split()[1])


def measure_resident() -> float:
    gc.collect()
    return read_kilobytes("VmRSS:")


async def main(port: int) -> dict[str, float]:
    address = f"http://127.0.0.1:{port}"
    credentials = Credentials(Login(place="bench", cluster=ClusterEntry(server=address), user=UserEntry()))
    async with Kube(credentials, stall_seconds=3600.0) as kube, aiohttp.ClientSession() as session:
        watches = (Watch(NODES), Watch(PODS))
        loop = Loop(kube, [], follow, clock=WallClock(), random=random.Random(0).random, also=watches)
        figures = {"before": measure_resident()}
        stop, began = asyncio.Event(), time.perf_counter()
        running = asyncio.create_task(loop.run(stop))
        while not loop.is_synced:
            await asyncio.sleep(0.05)
        figures["seconds"] = time.perf_counter() - began
        figures["listed"] = measure_resident()
        figures["placed"] = len(loop.state.snapshot.pods)
        figures["steady"] = measure_resident()
        _REFS.write_text("5", encoding="ascii")  # the high-water mark starts anew
        async with session.post(f"{address}/expire"):
            pass
        while True:
            async with session.get(f"{address}/lists") as response:
                if int(await response.text()) >= 2:
                    break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)  # the last page is on its way
        figures["peak_in_list"] = read_kilobytes("VmHWM:")
        figures["after_list"] = measure_resident()
        stop.set()
        await running
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
