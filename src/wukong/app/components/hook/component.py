"""The hook as a component: nothing without --hook, a server with it."""

from __future__ import annotations

from wukong.api.kinds import NODES
from wukong.app.component import Component, Context, Server
from wukong.app.components.hook.options import HookOptions, find_problems
from wukong.app.permissions import Permission


def permissions_of(options: HookOptions) -> tuple[Permission, ...]:
    return (Permission(NODES.group, NODES.plural, ("get", "list", "patch")),) if options.address else ()


def build_servers(options: HookOptions, context: Context) -> tuple[Server, ...]:
    if not options.address:
        return ()
    from wukong.app.components.hook.server import HookServer  # brings aiohttp

    return (HookServer(options, context),)


HOOK = Component(
    name="hook",
    help="takes notices that nodes are about to go from other programs, over HTTP, and writes them on the Nodes.",
    options=HookOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    build_servers=build_servers,
    is_named=False,
)
