"""Addresses to listen at, as people write them: HOST:PORT, :PORT, [IPV6]:PORT. Pure."""

from __future__ import annotations

EVERYWHERE = "0.0.0.0"


def find_address_problem(text: str) -> str:
    """What is wrong with an address; "" if nothing is."""
    port = text.rpartition(":")[2]
    if port.isdigit() and int(port) <= 65535:
        return ""
    return f"expected HOST:PORT such as 0.0.0.0:8080, got {text!r}."


def read_address(text: str) -> tuple[str, int]:
    """Host and port of an address without problems."""
    host, _, port = text.rpartition(":")
    return host.strip("[]") or EVERYWHERE, int(port)
