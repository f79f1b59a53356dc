"""`wukong rollout`: how a Rollout of ours stands, and what people ask of it. Argo's Rollouts are not touched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import click

from wukong.api.kinds import PODS, REPLICA_SETS, ROLLOUTS
from wukong.api.resources import Key
from wukong.api.rollout import HASH, Rollout
from wukong.app import rollout_requests
from wukong.cli.inputs import options
from wukong.cli.inputs.machine_source import follow_machines, read_machines
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import note, redraw, show, show_document
from wukong.cli.views.rollout_tree import build_document, build_lines
from wukong.errors import InputError, nearest
from wukong.ports import Cluster, Selection
from wukong.state import State
from wukong.state.controller import Watch

KINDS_SHOWN = (
    Watch(ROLLOUTS),
    Watch(REPLICA_SETS, selection=Selection(labels=HASH)),
    Watch(PODS, selection=Selection(labels=HASH)),
)
ENDINGS = {"Healthy": 0, "Degraded": 1, "Aborted": 1, "NotAccepted": 1}  # phase → exit code
TIMED_OUT = 1
Request = Callable[[Cluster, Key], Awaitable[str]]


@click.group("rollout")
def command() -> None:
    """Show a Rollout, and promote, abort, undo or restart it."""


def on_rollout(function: Any) -> Any:
    """The argument and the options that all of them have."""
    for decorate in (options.context, options.kubeconfig, options.namespace, click.argument("name")):
        function = decorate(function)
    return function


@command.command("status")
@click.option("-w", "--watch", is_flag=True, help="Show it again until it is healthy (0), or has failed (1).")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="With -w: give up after so long (1).")
@options.output
@on_rollout
def status(
    name: str,
    watch: bool,
    timeout: float | None,
    output: str | None,
    namespace: str | None,
    kubeconfig: str,
    context: str,
) -> int:
    """Show versions, pods, nodes, and the time left.

    \b
    Example:
      wukong rollout status web
      wukong rollout status web -n shop -w --timeout 600
      wukong rollout status web -o json
    """
    if watch and output in ("json", "yaml"):
        raise click.UsageError("--watch shows a tree: leave out --output.")
    source = Source(None, kubeconfig, context)
    key = Key(choose_namespace(namespace, source).name, name)
    if watch:
        return asyncio.run(_watch(source, key, timeout))
    state = asyncio.run(read_machines(source, key.namespace, KINDS_SHOWN))
    rollout = find_rollout(state, key)
    if output in ("json", "yaml"):
        show_document(build_document(rollout, state), output)
    else:
        show(*build_lines(rollout, state, time.time()))
    return 0


def find_rollout(state: State, key: Key) -> Rollout:
    rollout = state.get(Rollout, key)
    if rollout is None:
        names = [other.metadata.name for other in state.all(Rollout) if other.metadata.namespace == key.namespace]
        raise InputError(f"no Rollout {key} there.{nearest(key.name, names)}")
    return rollout


async def _watch(source: Source, key: Key, timeout: float | None) -> int:
    ending: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def show_again(state: State) -> None:
        rollout = find_rollout(state, key)
        redraw(*build_lines(rollout, state, time.time()))
        is_observed = rollout.status.observed_generation == rollout.metadata.generation
        if is_observed and rollout.status.phase in ENDINGS and not ending.done():
            ending.set_result(ENDINGS[rollout.status.phase])

    following: asyncio.Future[Any] = asyncio.create_task(
        follow_machines(source, key.namespace, show_again, KINDS_SHOWN)
    )
    try:
        await asyncio.wait({following, ending}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            return int(ending.result())
        if following.done():
            raise_first(following.exception())
        note(f"Rollout {key}: not done after {timeout:g} s.")
        return TIMED_OUT
    finally:
        following.cancel()


def raise_first(error: BaseException | None) -> None:
    """Raise an error of a group of tasks as it was raised there."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error


def ask(request: Request, name: str, namespace: str | None, kubeconfig: str, context: str) -> None:
    """Send one request, and say what becomes of it."""
    source = Source(None, kubeconfig, context)
    key = Key(choose_namespace(namespace, source).name, name)

    async def send() -> str:
        from wukong.cluster.credentials import load
        from wukong.cluster.kube import Kube

        async with Kube(load(source.kubeconfig, source.context)) as kube:
            return await request(kube, key)

    show(f"rollout {key}: {asyncio.run(send())}")


@command.command("promote")
@click.option("--full", is_flag=True, help="Skip all further steps and pauses, too.")
@on_rollout
def promote(name: str, full: bool, **cluster: Any) -> None:
    """Have a version that waits go on."""
    ask(lambda kube, key: rollout_requests.promote(kube, key, is_full=full), name, **cluster)


@command.command("abort")
@on_rollout
def abort(name: str, **cluster: Any) -> None:
    """Give up the new version: the stable one goes on."""
    ask(rollout_requests.abort, name, **cluster)


@command.command("retry")
@on_rollout
def retry(name: str, **cluster: Any) -> None:
    """Try a version again that was aborted."""
    ask(rollout_requests.retry, name, **cluster)


@command.command("undo")
@click.option("--to-revision", type=click.IntRange(min=1), metavar="N", help="[default: the one before]")
@on_rollout
def undo(name: str, to_revision: int | None, **cluster: Any) -> None:
    """Go back to the template of an earlier revision."""
    ask(lambda kube, key: rollout_requests.undo(kube, key, to_revision), name, **cluster)


@command.command("restart")
@on_rollout
def restart(name: str, **cluster: Any) -> None:
    """Replace all pods by new ones, by its strategy."""
    ask(lambda kube, key: rollout_requests.restart(kube, key, time.time()), name, **cluster)


@command.command("pause")
@on_rollout
def pause(name: str, **cluster: Any) -> None:
    """Take no further step, and promote nothing."""
    ask(lambda kube, key: rollout_requests.pause(kube, key, is_paused=True), name, **cluster)


@command.command("resume")
@on_rollout
def resume(name: str, **cluster: Any) -> None:
    """Go on after a pause."""
    ask(lambda kube, key: rollout_requests.pause(kube, key, is_paused=False), name, **cluster)
