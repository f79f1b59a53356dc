"""The options of `wukong sim run` for a real cluster, and how it is played there. Imports what that needs only then."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from wukong.cli.inputs import options
from wukong.cli.views.console import note
from wukong.embedded.scenario import Scenario, Story
from wukong.errors import InputError

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS = (
    options.kubeconfig,
    options.context,
    click.option(
        "--live", is_flag=True, help="Play it on that cluster, in real time: it writes there, and asks first."
    ),
    click.option("--yes", is_flag=True, help="With --live: do not ask."),
    click.option("--create-nodes", is_flag=True, help="With --live: make the scenario's nodes, for hollow clusters."),
    click.option("--keep", is_flag=True, help="With --live: leave what the run made."),
)


def add_cluster_options(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without_live(yes: bool, create_nodes: bool, keep: bool, **_: Any) -> None:
    values = {"--yes": yes, "--create-nodes": create_nodes, "--keep": keep}
    for option in [name for name, value in values.items() if value]:
        raise InputError(f"{option}: is about a run on a real cluster. Add --live, or leave it out.")


def confirm(server: str, is_confirmed: bool) -> None:
    """Ask whether to write to this cluster. Raises InputError where nobody says yes."""
    if is_confirmed:
        return
    question = f"This writes to {server}: it creates what the scenario names there, and removes it afterwards. Go on?"
    if not sys.stdin.isatty():
        raise InputError(f"--live writes to {server}. Add --yes where nobody can be asked.")
    if not click.confirm(question, err=True):
        raise InputError("--live: nothing was changed.")


def play_on_cluster(
    scenario: Scenario,
    seed: int,
    speed: str | None,
    *,
    kubeconfig: str,
    context: str,
    yes: bool,
    create_nodes: bool,
    keep: bool,
    **_: Any,
) -> Story:
    if seed or speed:
        option = "--seed: a real cluster draws itself" if seed else "--speed: a real cluster has its own time"
        raise InputError(f"{option}. Leave it out with --live.")
    import asyncio

    from wukong.app.sim_live import Options, play_live
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    credentials = load(kubeconfig, context)
    confirm(credentials.server, yes)
    logging.getLogger("wukong").addHandler(logging.NullHandler())  # what was refused is part of the story

    async def play() -> Story:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # Ctrl-C does so by itself
        async with Kube(credentials) as kube:
            return await play_live(kube, scenario, Options(create_nodes=create_nodes, keep=keep), note)

    try:
        return asyncio.run(play())
    except asyncio.CancelledError:  # SIGTERM: everything has been taken back
        raise KeyboardInterrupt from None
