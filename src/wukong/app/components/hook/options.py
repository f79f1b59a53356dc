"""The options by which the hook listens, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.app.addresses import find_address_problem
from wukong.app.component import PlaceOf


class HookOptions(msgspec.Struct, frozen=True, rename="camel"):
    address: Annotated[
        str,
        Meta(
            description="Take notices by POST /notices there.  [default: nowhere]",
            extra={"flag": "--hook", "metavar": "HOST:PORT"},
        ),
    ] = ""
    token_file: Annotated[
        str,
        Meta(
            description="What callers must show, a token on each line; read again when it changes.",
            extra={"flag": "--hook-token-file", "metavar": "FILE"},
        ),
    ] = ""
    cert: Annotated[
        str,
        Meta(
            description="The hook's certificate (PEM); read again when it changes.",
            extra={"flag": "--hook-cert", "metavar": "FILE"},
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(description="The certificate's private key (PEM).", extra={"flag": "--hook-key", "metavar": "FILE"}),
    ] = ""
    plain_http: Annotated[
        bool,
        Meta(description="No TLS: whoever is on the way reads the token.", extra={"flag": "--hook-plain-http"}),
    ] = False


def find_problems(options: HookOptions, place_of: PlaceOf) -> Iterator[str]:
    if not options.address:
        for field in ("token_file", "cert", "key", "plain_http"):
            if getattr(options, field):
                yield f"{place_of(field)}: is about the hook, which is off. Say where it listens: {_name(place_of)}."
        return
    if problem := find_address_problem(options.address):
        yield f"{place_of('address')}: {problem}"
    if not options.token_file:
        yield f"{place_of('token_file')}: expected the file with the token that callers must show, got none."
    has_files = bool(options.cert), bool(options.key)
    if options.plain_http and any(has_files):
        yield f"{place_of('plain_http')}: expected no certificate with it. Leave it, or the certificate, out."
    elif not options.plain_http and not all(has_files):
        missing = place_of("cert" if not options.cert else "key")
        yield f"{missing}: the hook speaks TLS and needs a certificate and its key, or --hook-plain-http to try it."


def _name(place_of: PlaceOf) -> str:
    return place_of("address").rpartition(": ")[2]
