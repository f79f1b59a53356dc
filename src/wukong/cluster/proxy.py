"""Which proxy leads to a server, by the variables every tool honours: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.

Pure. aiohttp's own `trust_env` is not used: it knows no networks in NO_PROXY (10.96.0.0/12 is what clusters have there,
and Go understands it), and it would send a password from ~/.netrc to the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from wukong.errors import InputError


def proxy_for(server: str, env: Mapping[str, str]) -> str:
    """The proxy's address, or "" for a direct connection."""
    address = urlsplit(server)
    host = (address.hostname or "").lower()
    if not host or is_local(host) or is_excluded(host, address.port, _variable(env, "NO_PROXY")):
        return ""
    return checked(_variable(env, f"{address.scheme.upper()}_PROXY"), f"${address.scheme.upper()}_PROXY")


def checked(proxy: str, place: str) -> str:
    if not proxy:
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise InputError(f"{place}: expected an http:// or https:// proxy, got {proxy!r}. SOCKS is not supported.")
    return proxy


def is_local(host: str) -> bool:
    """Go never uses a proxy for this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_excluded(host: str, port: int | None, no_proxy: str) -> bool:
    """By `*`, a domain and all below it, `.domain` for only what is below, an address, a network; maybe with a port."""
    return any(_matches(word.strip().lower(), host, port) for word in no_proxy.split(",") if word.strip())


def _matches(word: str, host: str, port: int | None) -> bool:
    if word == "*":
        return True
    try:
        return ip_address(host) in ip_network(word, strict=False)
    except ValueError:
        pass
    name, colon, wanted = word.rpartition(":")
    if colon and wanted.isdigit() and (":" not in name or name.endswith("]")):
        return int(wanted) == (port or 443) and _matches(name.strip("[]"), host, port)
    word = word.removeprefix("*")
    return host.endswith(word) if word.startswith(".") else host == word or host.endswith(f".{word}")


def _variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.lower()) or ""
