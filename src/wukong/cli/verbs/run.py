"""`wukong run`: the controllers, on the cluster of the current context or of the pod it runs in."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
import textwrap
from typing import Any

import click

from wukong.api.documents import load_yaml
from wukong.app.component_choice import LIVE_COMPONENTS
from wukong.app.live import run
from wukong.app.run_config import RUN, RunConfig, read_run_config, sections
from wukong.cli.inputs.flags import add_flags, read_flags
from wukong.cli.views.escaping import escape, escape_json, escape_line
from wukong.cluster import place_name, read_settings
from wukong.cluster.credentials import load
from wukong.errors import InputError

_USUAL = frozenset(vars(logging.makeLogRecord({})))
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


def log_to_stderr(form: str) -> None:
    """Constant messages with their facts behind them: as JSON, or as text with key=value."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {
        key: value for key, value in vars(record).items() if key not in _USUAL and key not in ("message", "asctime")
    }


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head = {"time": self.formatTime(record), "level": record.levelname.lower(), "message": record.getMessage()}
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return escape_json(json.dumps({**head, **_facts(record), **error}, default=str))


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        error = f"\n{escape(self.formatException(record.exc_info))}" if record.exc_info else ""
        line = escape_line(f"{record.levelname.lower():7} {record.getMessage()}{facts}")
        return f"{self.formatTime(record)} {line}{error}"
