"""The options of `wukong run` that concern the extender, and what they mean. Used by run.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from wukong.app.extender import ExtenderOptions, TlsFiles
from wukong.cli.inputs.extender_options import (
    CRITICAL_PRIORITY,
    DEFAULT_STRATEGY,
    LATENCIES,
    PRICES,
    read_file,
    strategy_of,
)
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES
from wukong.placement.prices import Prices, read_prices
from wukong.placement.rules.latency import read_latencies
from wukong.replies.extender.usage import UsageSettings
from wukong.replies.extender.verbs import Settings

_F = TypeVar("_F", bound=Callable[..., object])
_SECURE, _PLAIN = "0.0.0.0:8443", "0.0.0.0:8080"


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
    CRITICAL_PRIORITY,
    DEFAULT_STRATEGY,
    PRICES,
    LATENCIES,
    click.option(
        "--gpu-resources", default=",".join(GPU_NAMES), show_default=True, metavar="NAMES", help="What gpu means."
    ),
)


def read_extender_options(given: Mapping[str, object]) -> ExtenderOptions:
    is_plain = bool(given["extender_plain_http"])
    tls = _tls(given, is_plain)
    stale = given["stale_seconds"]
    assert isinstance(stale, int | float)
    priority, prices, latencies = (given[name] for name in ("critical_priority", "prices", "latencies"))
    assert isinstance(priority, int)
    assert prices is None or isinstance(prices, str)
    assert latencies is None or isinstance(latencies, str)
    return ExtenderOptions(
        address=address(str(given["extender"]) or (_PLAIN if is_plain else _SECURE), "--extender"),
        tls=tls,
        settings=Settings(
            critical_priority=priority,
            strategy=strategy_of(str(given["default_strategy"])),
            gpu_names=tuple(name.strip() for name in str(given["gpu_resources"]).split(",") if name.strip()),
            usage=UsageSettings(stale_seconds=float(stale)),
        ),
        prices=read_file(prices, read_prices) or Prices(),
        latencies=read_file(latencies, read_latencies) or {},
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


def address(text: str, option: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise InputError(f"{option}: expected HOST:PORT such as 0.0.0.0:8080, got {text!r}.")
    return host.strip("[]") or "0.0.0.0", int(port)
