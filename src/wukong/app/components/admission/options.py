"""The options by which the webhooks listen and prove who they are, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from wukong.api.resources import Key
from wukong.app.addresses import find_address_problem, read_address
from wukong.app.component import PlaceOf
from wukong.app.install.installation import NAMESPACE

SERVICE = "wukong-admission"
ADDRESS = ":9443"  # all addresses, IPv4 and IPv6


class CertificatePaths(NamedTuple):
    certificate: Path
    key: Path


class AdmissionOptions(msgspec.Struct, frozen=True, rename="camel"):
    address: Annotated[
        str,
        Meta(description="Where the webhooks listen.", extra={"flag": "--admission", "metavar": "HOST:PORT"}),
    ] = ADDRESS
    service: Annotated[
        str,
        Meta(
            description="The Service by which API servers find them: its name is in the certificate.",
            extra={"flag": "--admission-service", "metavar": "NAMESPACE/NAME"},
        ),
    ] = f"{NAMESPACE}/{SERVICE}"
    cert: Annotated[
        str,
        Meta(
            description="Their certificate (PEM); read again when it changes.  [default: one of our own making]",
            extra={"flag": "--admission-cert", "metavar": "FILE"},
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(description="The certificate's private key (PEM).", extra={"flag": "--admission-key", "metavar": "FILE"}),
    ] = ""
    certificate_days: Annotated[
        int, Meta(description="How long one of our own making is good; renewed after two thirds.", ge=1, le=3650)
    ] = 90
    spread_seconds: Annotated[
        float,
        Meta(description="How long API servers know a new authority before it signs.", ge=0, le=86_400),
    ] = 60.0
    answer_seconds: Annotated[
        float,
        Meta(
            description="After this long a pod is answered unpatched; less than the webhooks' timeout.", ge=0.05, le=30
        ),
    ] = 1.5


def find_problems(options: AdmissionOptions, place_of: PlaceOf) -> Iterator[str]:
    if problem := find_address_problem(options.address):
        yield f"{place_of('address')}: {problem}"
    namespace, slash, name = options.service.partition("/")
    if not (namespace and slash and name) or "/" in name:
        yield f"{place_of('service')}: expected NAMESPACE/NAME, got {options.service!r}."
    if bool(options.cert) != bool(options.key):
        missing, other = ("cert", "key") if options.key else ("key", "cert")
        yield f"{place_of(missing)}: expected a certificate and its key, got only {place_of(other)}. Give both or none."


def address_of(options: AdmissionOptions) -> tuple[str, int]:
    return read_address(options.address)


def service_of(options: AdmissionOptions) -> Key:
    namespace, _, name = options.service.partition("/")
    return Key(namespace, name)


def files_of(options: AdmissionOptions) -> CertificatePaths | None:
    """The files that somebody else keeps; None: we make and renew our own certificate."""
    return CertificatePaths(Path(options.cert), Path(options.key)) if options.cert else None


def secret_of(service: Key) -> Key:
    """The Secret in which the certificates of our own making are kept."""
    return Key(service.namespace, f"{service.name}-certificates")


def configuration_of(service: Key) -> str:
    """The name of both webhook configurations. It carries the namespace: two installations do not take each other's."""
    return f"{service.name}.{service.namespace}"


def hosts_of(service: Key) -> tuple[str, ...]:
    """The names by which an API server calls a Service."""
    return f"{service.name}.{service.namespace}.svc", f"{service.name}.{service.namespace}.svc.cluster.local"
