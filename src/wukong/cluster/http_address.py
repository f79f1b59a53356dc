"""Whether a text is an address that can be asked by HTTP. Pure. Used for servers, proxies and Prometheus."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http_address(text: str) -> bool:
    """Tell whether it has http or https, a host and no port that is none, and nothing that an address cannot hold."""
    try:
        address = urlsplit(text)
        is_whole = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # an unclosed [, a port that is no number
        return False
    return is_whole and text.isprintable() and " " not in text
