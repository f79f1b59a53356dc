"""When the webhooks' own certificates are made anew. `decide_step` is the rule; certificate_keeper.py is its shell.

    none ── create ──► authority, server
                          │  server near its end ── renew ──► another server of the same authority
                          │  authority near its end ── prepare ──► + next authority, told to API servers
                          │  the next one is known everywhere ── promote ──► it signs; the old one is still believed
                          └─ the old one has signed nothing in use for a while ── retire ──► authority, server

At every moment the certificate that any instance serves was signed by an authority that any API server believes: a new
one is told before it signs, an old one is believed until nobody serves what it signed. "Near its end" is the last
third.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from wukong.app.install.certificates import SLACK, Pair, issue_authority, issue_server

NAME = "wukong-admission"
AUTHORITY_LIFETIMES = 4  # of its servers
RETIRE_SECONDS = 600.0  # every instance has looked for a newer certificate many times by then
Step = Literal["create", "renew", "prepare", "promote", "retire", "keep"]


class Keys(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is kept. `old` is the certificate of an authority that signs no more."""

    authority: Pair
    server: Pair
    next: Pair | None = None
    old: bytes = b""

    @property
    def bundle(self) -> bytes:
        """The authorities to be believed, in PEM."""
        return self.authority.certificate + (self.next.certificate if self.next else b"") + self.old


class RotationTimes(msgspec.Struct, frozen=True):
    lifetime: timedelta = timedelta(days=90)  # of a server's certificate
    spread_seconds: float = 60.0  # until all API servers have heard of a new authority


def decide_step(
    keys: Keys | None, hosts: Sequence[str], is_next_known: bool, now: datetime, times: RotationTimes
) -> Step:
    """What is to be done. `is_next_known`: the webhook configurations name the next authority."""
    if keys is None or not _is_usable(keys):
        return "create"
    authority, server = _load(keys.authority), _load(keys.server)
    if keys.next is not None:
        is_spread = is_next_known and _age_of(_load(keys.next), now) >= times.spread_seconds
        if is_spread or now >= authority.not_valid_after_utc:
            return "promote"
    elif _is_near_end(authority, now):
        return "prepare"
    if _is_near_end(server, now) and server.not_valid_after_utc < authority.not_valid_after_utc:
        return "renew"
    if not _names_all(server, hosts):
        return "renew"
    if keys.old and _age_of(server, now) >= max(RETIRE_SECONDS, times.spread_seconds):
        return "retire"
    return "keep"


def take_step(step: Step, keys: Keys | None, hosts: Sequence[str], now: datetime, times: RotationTimes) -> Keys:
    """The keys as they are after the step. New ones are random."""
    lifetime, authority_lifetime = times.lifetime, times.lifetime * AUTHORITY_LIFETIMES
    if step == "create" or keys is None:
        authority = issue_authority(NAME, now, authority_lifetime)
        return Keys(authority, issue_server(authority, NAME, hosts, now, lifetime))
    if step == "renew":
        server = issue_server(keys.authority, NAME, hosts, now, lifetime)
        return msgspec.structs.replace(keys, server=server)
    if step == "prepare":
        return msgspec.structs.replace(keys, next=issue_authority(NAME, now, authority_lifetime))
    if step == "promote":
        assert keys.next is not None, "only then it is decided"
        server = issue_server(keys.next, NAME, hosts, now, lifetime)
        return Keys(keys.next, server, old=keys.authority.certificate)
    return msgspec.structs.replace(keys, old=b"") if step == "retire" else keys


def encode_keys(keys: Keys) -> dict[str, str | None]:
    """The data of the Secret, for a merge patch: what is not there is null."""
    files: dict[str, bytes | None] = {
        "ca.crt": keys.authority.certificate,
        "ca.key": keys.authority.key,
        "tls.crt": keys.server.certificate,
        "tls.key": keys.server.key,
        "next-ca.crt": keys.next.certificate if keys.next else None,
        "next-ca.key": keys.next.key if keys.next else None,
        "old-ca.crt": keys.old or None,
    }
    return {name: None if content is None else base64.b64encode(content).decode() for name, content in files.items()}


def decode_keys(data: Mapping[str, Any]) -> Keys | None:
    """What a Secret's data holds; None if something is missing or was never ours."""
    try:
        files = {name: base64.b64decode(content, validate=True) for name, content in data.items()}
        following = Pair(files["next-ca.crt"], files["next-ca.key"]) if "next-ca.crt" in files else None
        return Keys(
            Pair(files["ca.crt"], files["ca.key"]),
            Pair(files["tls.crt"], files["tls.key"]),
            following,
            files.get("old-ca.crt", b""),
        )
    except (KeyError, TypeError, binascii.Error):
        return None


def now_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def expiry_of(keys: Keys) -> float:
    """When the certificate that is served expires, in seconds since 1970."""
    return _load(keys.server).not_valid_after_utc.timestamp()


def _is_usable(keys: Keys) -> bool:
    """Whether each certificate has its key, and the authority signed the server."""
    try:
        pairs = [keys.authority, keys.server, *([keys.next] if keys.next else [])]
        for pair in pairs:
            key = serialization.load_pem_private_key(pair.key, None)
            if key.public_key() != _load(pair).public_key():
                return False
        _load(keys.server).verify_directly_issued_by(_load(keys.authority))
        if keys.old:
            x509.load_pem_x509_certificate(keys.old)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _load(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def _age_of(certificate: x509.Certificate, now: datetime) -> float:
    return (now - certificate.not_valid_before_utc - SLACK).total_seconds()


def _is_near_end(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc - SLACK
    return now >= certificate.not_valid_after_utc - life / 3


def _names_all(certificate: x509.Certificate, hosts: Sequence[str]) -> bool:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return set(hosts) <= set(names.get_values_for_type(x509.DNSName))
