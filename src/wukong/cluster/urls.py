"""What is wrong with the address of a server or proxy, before a connection is tried with it. Pure."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from wukong.cluster.redaction import redact_urls

_HOST = re.compile(r"(?=.{1,253}\.?$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}(\.[A-Za-z0-9_-]{1,63})*)\.?", re.ASCII)
_LONGEST_SHOWN = 100


def find_url_problem(url: str, example: str = "https://10.0.0.1:6443 or https://[fd00::1]:6443") -> str:
    """Return what is wrong with an http or https address, "" if nothing is. Never shows a password."""
    expected = f"expected an address such as {example}"
    if not url.startswith(("https://", "http://")) or not url.isprintable() or " " in url:
        return f"{expected}, got {_show(url)}."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:  # an unclosed bracket, a port that is no number or too large
        return f"{expected}, got {_show(url)}: {error}."
    if port == 0 or not _is_host(host):
        return f"{expected}, got {_show(url)}."
    return ""


def _is_host(host: str) -> bool:
    if ":" not in host:
        return _HOST.fullmatch(host) is not None
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _show(url: str) -> str:
    return f"{redact_urls(url)[:_LONGEST_SHOWN]!r}"
