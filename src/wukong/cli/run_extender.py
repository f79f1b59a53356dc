"""The options of `wukong run` that concern the extender, and what they mean. Used by run.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from wukong.api.placement import STRATEGIES
from wukong.app.extender import ExtenderOptions, TlsFiles
from wukong.cluster import place_name, read_text
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES
from wukong.placement.prices import Prices, read_prices
from wukong.placement.rules.latency import read_latencies
from wukong.replies.extender import Settings
from wukong.replies.usage import UsageSettings

_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")
_SECURE, _PLAIN = "0.0.0.0:8443", "0.0.0.0:8080"
_NONE = "none"


def extender_options(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--extender",
        default="",
        metavar="HOST:PORT",
        help=f"Where the extender listens.  [default: {_SECURE}, plain: {_PLAIN}]",
    ),
    click.option(
        "--extender-cert", type=Path, metavar="FILE", help="Its certificate (PEM); read again when it changes."
    ),
    click.option("--extender-key", type=Path, metavar="FILE", help="The certificate's private key (PEM)."),
    click.option(
        "--extender-client-ca", type=Path, metavar="FILE", help="Who signs the scheduler's certificate (PEM)."
    ),
    click.option("--extender-plain-http", is_flag=True, help="No TLS: anyone who reaches the port may ask."),
    click.option(
        "--critical-priority",
        default=Settings().critical_priority,
        show_default=True,
        help="Pods at or above it go on-demand first.",
    ),
    click.option(
        "--default-strategy",
        type=click.Choice([*STRATEGIES, _NONE]),
        default=Settings().strategy,
        show_default=True,
        help="Where no policy matches and none is named default.",
    ),
    click.option("--prices", default="", metavar="FILE", help="What nodes cost.  [default: labels, then list prices]"),
    click.option("--latencies", default="", metavar="FILE", help="Milliseconds between zones, for the rule latency."),
    click.option(
        "--gpu-resources", default=",".join(GPU_NAMES), show_default=True, metavar="NAMES", help="What gpu means."
    ),
)


def read_extender_options(given: Mapping[str, object]) -> ExtenderOptions:
    is_plain = bool(given["extender_plain_http"])
    tls = _tls(given, is_plain)
    stale = given["stale_seconds"]
    assert isinstance(stale, int | float)
    priority = given["critical_priority"]
    assert isinstance(priority, int)
    strategy = str(given["default_strategy"])
    return ExtenderOptions(
        address=address(str(given["extender"]) or (_PLAIN if is_plain else _SECURE), "--extender"),
        tls=tls,
        settings=Settings(
            critical_priority=priority,
            strategy="" if strategy == _NONE else strategy,
            gpu_names=tuple(name.strip() for name in str(given["gpu_resources"]).split(",") if name.strip()),
            usage=UsageSettings(stale_seconds=float(stale)),
        ),
        prices=_read(str(given["prices"]), read_prices) or Prices(),
        latencies=_read(str(given["latencies"]), read_latencies) or {},
    )


def _tls(given: Mapping[str, object], is_plain: bool) -> TlsFiles | None:
    files = {name: given[f"extender_{name}"] for name in ("cert", "key", "client_ca")}
    missing = [f"--extender-{name.replace('_', '-')}" for name, path in files.items() if path is None]
    if is_plain:
        if len(missing) < len(files):
            raise InputError("--extender-plain-http: expected no certificates with it. Leave it, or them, out.")
        return None
    if missing:
        raise InputError(
            f"{missing[0]}: the extender speaks mutual TLS and needs all of --extender-cert, --extender-key and "
            "--extender-client-ca. Make them with `wukong manifests extender`, or try with --extender-plain-http."
        )
    cert, key, client_ca = (path for path in files.values() if isinstance(path, Path))
    return TlsFiles(cert, key, client_ca)


def _read(path: str, read: Callable[[bytes], _T]) -> _T | None:
    if not path:
        return None
    try:
        return read(bytes(read_text(path)))
    except InputError as error:
        name = place_name(path)
        if error.problems and error.problems[0].startswith(f"{name}: "):
            raise
        raise error.at(name) from None


def address(text: str, option: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise InputError(f"{option}: expected HOST:PORT such as 0.0.0.0:8080, got {text!r}.")
    return host.strip("[]") or "0.0.0.0", int(port)
