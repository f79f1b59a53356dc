"""Which proxy leads to a server, by the variables every tool honours: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.

Pure. aiohttp's own `trust_env` is not used: it knows no networks in NO_PROXY (10.96.0.0/12 is what clusters have there,
and Go understands it), and it would send a password from ~/.netrc to the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from wukong.cluster.redaction import redact_urls
from wukong.cluster.urls import find_url_problem
from wukong.errors import InputError


def find_proxy(server: str, env: Mapping[str, str]) -> str:
    """Return the proxy's address, or "" for a direct connection."""
    address = urlsplit(server)
    host = (address.hostname or "").lower()
    if not host or is_local(host) or is_excluded(host, address.port, _read_variable(env, "NO_PROXY")):
        return ""
    return check_proxy(_read_variable(env, f"{address.scheme.upper()}_PROXY"), f"${address.scheme.upper()}_PROXY")


def check_proxy(proxy: str, place: str) -> str:
    """Return the address with a scheme, "" for none. Raises InputError, without a password, if it is no HTTP proxy."""
    if not proxy:
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise InputError(
            f"{place}: expected an http:// or https:// proxy, got {redact_urls(proxy)!r}. SOCKS is not supported."
        )
    if problem := find_url_problem(proxy):
        raise InputError(f"{place}: {problem}")
    return proxy


def is_local(host: str) -> bool:
    """Tell whether the host is this machine, for which Go never uses a proxy."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_excluded(host: str, port: int | None, no_proxy: str) -> bool:
    """Tell whether NO_PROXY names the host: `*`, a domain, `.domain` (only below it), address, network; maybe :port."""
    return any(_matches(word.strip().lower(), host, port) for word in no_proxy.split(",") if word.strip())


def _matches(word: str, host: str, port: int | None) -> bool:
    if word == "*":
        return True
    try:
        return ip_address(host) in ip_network(word, strict=False)
    except ValueError:
        pass
    name, colon, wanted_port = word.rpartition(":")
    if colon and wanted_port.isascii() and wanted_port.isdigit() and (":" not in name or name.endswith("]")):
        return wanted_port == str(port or 443) and _matches(name.strip("[]"), host, port)
    word = word.removeprefix("*")
    return host.endswith(word) if word.startswith(".") else host == word or host.endswith(f".{word}")


def _read_variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.lower()) or ""
