"""The options by which the extender listens and decides, and what they mean. Also used by verbs that ask it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from wukong.api.policy_parts import STRATEGIES
from wukong.app.addresses import find_address_problem, read_address
from wukong.app.component import PlaceOf
from wukong.cluster import place_name, read_settings
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES
from wukong.placement.fleet import Latencies
from wukong.placement.prices import Prices, read_prices
from wukong.placement.rules.latency import read_latencies
from wukong.replies.extender.usage import UsageSettings
from wukong.replies.extender.verbs import Settings

T = TypeVar("T")
NO_STRATEGY = "none"
SECURE, PLAIN = ":8443", ":8080"  # all addresses, IPv4 and IPv6


class TlsFiles(NamedTuple):
    certificate: Path
    key: Path
    client_ca: Path


class ExtenderOptions(msgspec.Struct, frozen=True, rename="camel"):
    address: Annotated[
        str,
        Meta(
            description=f"Where the extender listens.  [default: {SECURE}, plain: {PLAIN}]",
            extra={"flag": "--extender", "metavar": "HOST:PORT"},
        ),
    ] = ""
    cert: Annotated[
        str,
        Meta(
            description="Its certificate (PEM); read again when it changes.",
            extra={"flag": "--extender-cert", "metavar": "FILE"},
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(description="The certificate's private key (PEM).", extra={"flag": "--extender-key", "metavar": "FILE"}),
    ] = ""
    client_ca: Annotated[
        str,
        Meta(
            description="Who signs the scheduler's certificate (PEM).",
            extra={"flag": "--extender-client-ca", "metavar": "FILE"},
        ),
    ] = ""
    plain_http: Annotated[
        bool,
        Meta(description="No TLS: anyone who reaches the port may ask.", extra={"flag": "--extender-plain-http"}),
    ] = False
    critical_priority: Annotated[
        int,
        Meta(description="Pods at or above it go on-demand first.", ge=-(2**31), le=2**31 - 1, extra={"metavar": "N"}),
    ] = Settings().critical_priority
    default_strategy: Annotated[
        str,
        Meta(
            description="Where no policy matches and none is named default.",
            extra={"choices": (*STRATEGIES, NO_STRATEGY)},
        ),
    ] = Settings().strategy
    prices: Annotated[
        str, Meta(description="What nodes cost.  [default: labels, then list prices]", extra={"metavar": "FILE"})
    ] = ""
    latencies: Annotated[
        str, Meta(description="Milliseconds between zones, for the rule latency.", extra={"metavar": "FILE"})
    ] = ""
    gpu_resources: Annotated[tuple[str, ...], Meta(description="What gpu means.", extra={"metavar": "NAMES"})] = (
        GPU_NAMES
    )


def find_problems(options: ExtenderOptions, place_of: PlaceOf) -> Iterator[str]:
    if options.address and (problem := find_address_problem(options.address)):
        yield f"{place_of('address')}: {problem}"
    places = {name: place_of(name) for name in ("cert", "key", "client_ca", "plain_http")}
    missing = [place for name, place in places.items() if name != "plain_http" and not getattr(options, name)]
    if options.plain_http and len(missing) < 3:
        yield f"{places['plain_http']}: expected no certificates with it. Leave it, or them, out."
    elif not options.plain_http and missing:
        cert, key, client_ca, plain = (place.rpartition(": ")[2] for place in places.values())
        yield (
            f"{missing[0]}: the extender speaks mutual TLS and needs all of {cert}, {key} and {client_ca}. "
            f"Make them with `wukong manifests extender`, or try with {plain}."
        )


def address_of(options: ExtenderOptions) -> tuple[str, int]:
    return read_address(options.address or (PLAIN if options.plain_http else SECURE))


def tls_of(options: ExtenderOptions) -> TlsFiles | None:
    """The files that TLS is made of; None for plain HTTP."""
    if options.plain_http:
        return None
    return TlsFiles(Path(options.cert), Path(options.key), Path(options.client_ca))


def settings_of(
    options: ExtenderOptions,
    stale_seconds: float = UsageSettings().stale_seconds,
    *,
    judges_wukong_resources: bool = False,
) -> Settings:
    strategy = options.default_strategy
    return Settings(
        critical_priority=options.critical_priority,
        strategy="" if strategy == NO_STRATEGY else strategy,
        gpu_names=options.gpu_resources,
        usage=UsageSettings(stale_seconds=stale_seconds),
        judges_wukong_resources=judges_wukong_resources,
    )


def prices_of(options: ExtenderOptions) -> Prices | None:
    """What the file of prices says; None where none is named. InputError names the file."""
    return _read_file(options.prices, read_prices)


def latencies_of(options: ExtenderOptions) -> Latencies | None:
    return _read_file(options.latencies, read_latencies)


def _read_file(path: str, read: Callable[[bytes], T]) -> T | None:
    if not path:
        return None
    data = read_settings(path)
    try:
        return read(data)
    except InputError as error:
        raise error.at(place_name(path)) from None
