"""An extender as one writes it at first, in Python: aiohttp and the json of the standard library, spot nodes first.

`python -m bench.extender.plain` prints the port it listens on. Does what the Go programs beside it do, no more.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web

from bench.extender import requests
from wukong.serve.site import serve

SPOT: dict[str, bool] = {}


def is_spot(node: dict[str, Any]) -> bool:
    return bool(node["metadata"]["labels"].get(requests.CAPACITY_TYPE) == "spot")


def filtered(args: dict[str, Any]) -> dict[str, Any]:
    failed: dict[str, str] = {}
    if args["NodeNames"] is not None:
        names = [name for name in args["NodeNames"] if SPOT.get(name)]
        if names:
            failed = {name: "not a spot node" for name in args["NodeNames"] if not SPOT.get(name)}
        return {"NodeNames": names or args["NodeNames"], "FailedNodes": failed}
    nodes = args["Nodes"]["items"]
    kept = [node for node in nodes if is_spot(node)]
    if kept:
        failed = {node["metadata"]["name"]: "not a spot node" for node in nodes if not is_spot(node)}
    return {"Nodes": {"items": kept or nodes}, "FailedNodes": failed}


def prioritized(args: dict[str, Any]) -> list[dict[str, Any]]:
    if args["NodeNames"] is not None:
        return [{"Host": name, "Score": 10 if SPOT.get(name) else 0} for name in args["NodeNames"]]
    return [{"Host": node["metadata"]["name"], "Score": 10 if is_spot(node) else 0} for node in args["Nodes"]["items"]]


async def filter_(request: web.Request) -> web.Response:
    return web.json_response(filtered(await request.json()))


async def prioritize(request: web.Request) -> web.Response:
    return web.json_response(prioritized(await request.json()))


async def main() -> None:
    SPOT.update({requests.name_of(number): is_spot(requests.a_node(number)) for number in range(requests.NODES)})
    app = web.Application(client_max_size=256 << 20)
    app.add_routes([web.post("/filter", filter_), web.post("/prioritize", prioritize)])
    async with AsyncExitStack() as stack:
        print(await serve(stack, app, "127.0.0.1", 0), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
