"""The options of `wukong sim run` for a real cluster, and how it is played there. Imports what that needs only then."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from typing import Any, TypeVar

import click

from wukong.cli.views.console import note
from wukong.embedded.scenario import Scenario, Story
from wukong.errors import InputError

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--kubeconfig", default="", metavar="FILE", help="Play it on this cluster, in real time."),
    click.option("--context", default="", metavar="NAME", help="Instead of that kubeconfig's current context."),
    click.option("--create-nodes", is_flag=True, help="There, make the scenario's nodes: for hollow clusters."),
    click.option("--keep", is_flag=True, help="There, leave what the run made."),
)


def add_cluster_options(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without_cluster(context: str, create_nodes: bool, keep: bool, **_: Any) -> None:
    values = {"--context": context, "--create-nodes": create_nodes, "--keep": keep}
    for option in [name for name, value in values.items() if value]:
        raise InputError(f"{option}: is about a real cluster. Name it by --kubeconfig, or leave it out.")


def play_on_cluster(
    scenario: Scenario, seed: int, speed: str | None, *, kubeconfig: str, context: str, create_nodes: bool, keep: bool
) -> Story:
    if seed or speed:
        option = "--seed: a real cluster draws itself" if seed else "--speed: a real cluster has its own time"
        raise InputError(f"{option}. Leave it out with --kubeconfig.")
    import asyncio

    from wukong.app.sim_live import Options, play_live
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    logging.getLogger("wukong").addHandler(logging.NullHandler())  # what was refused is part of the story

    async def play() -> Story:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # Ctrl-C does so by itself
        async with Kube(load(kubeconfig, context)) as kube:
            return await play_live(kube, scenario, Options(create_nodes=create_nodes, keep=keep), note)

    try:
        return asyncio.run(play())
    except asyncio.CancelledError:  # SIGTERM: everything has been taken back
        raise KeyboardInterrupt from None
