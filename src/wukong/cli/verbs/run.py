"""`wukong run`: the controllers, on the cluster of the current context or of the pod it runs in."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import textwrap
from typing import Any

import click

from wukong.api.documents import load_yaml
from wukong.app.component_choice import LIVE_COMPONENTS
from wukong.app.live import run
from wukong.app.run_config import RUN, RunConfig, read_run_config, sections
from wukong.cli.inputs.flags import add_flags, read_flags
from wukong.cli.views.log_lines import log_to_stderr
from wukong.cluster import place_name, read_settings
from wukong.cluster.credentials import load
from wukong.errors import InputError

_NAME_WIDTH, _HELP_WIDTH = 7, 112
HELP = """Run Wukong's controllers until stopped.

\b
{components}

Several instances may run: one leads and acts, the others stand by. Stop it with SIGTERM or Ctrl-C: what is in
flight is finished and the lease given back.

With --config the same is read from a YAML file: fields at the top, and a section for each component and the gate.
Flags win over the file. With --dry-run it says what it would do, once each, and does nothing.

\b
Example:
  wukong run --components load --prometheus http://prometheus.monitoring:9090
  wukong run --components extender,policy --extender-plain-http
  wukong run --config run.yaml --dry-run
"""


def describe_components() -> str:
    """The help of each component beside its name; below it where the name is too long."""
    lines: list[str] = []
    for name, component in LIVE_COMPONENTS.items():
        wrapped = textwrap.wrap(component.help, _HELP_WIDTH - _NAME_WIDTH, break_on_hyphens=False)
        if len(name) < _NAME_WIDTH:
            lines.append(f"{name:{_NAME_WIDTH}}{wrapped.pop(0)}")
        else:
            lines.append(name)
        lines += [" " * _NAME_WIDTH + line for line in wrapped]
    return "\n".join(lines)


@click.command("run", help=HELP.format(components=describe_components()))
@click.option("--config", metavar="FILE", help="Read options from this file, too (YAML); - is stdin.")
@add_flags(sections())
@click.pass_context
def command(invocation: click.Context, /, config: str | None, **_: Any) -> None:
    options = read_options(invocation, config)
    log_to_stderr(options.run.log_format)
    asyncio.run(_run_until_signal(options))


def read_options(context: click.Context, path: str | None) -> RunConfig:
    """What the command line and the file say. Raises InputError with every problem of both."""
    flags = read_flags(context, sections())
    if path is not None:
        return read_run_config(flags, read_file(path), place_name(path))
    if (RUN, "components") not in flags:
        (parameter,) = [param for param in context.command.params if param.name == "components"]
        raise click.MissingParameter(ctx=context, param=parameter)
    return read_run_config(flags)


def read_file(path: str) -> object:
    try:
        document: object = load_yaml(read_settings(path))
    except InputError as error:
        raise error.at(place_name(path)) from None
    return {} if document is None else document


async def _run_until_signal(config: RunConfig) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
    try:
        await run(load(config.run.kubeconfig, config.run.context), config, identity, stop)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
