"""Addresses to listen at, as people write them: HOST:PORT, :PORT or PORT, [IPV6]:PORT. Pure."""

from __future__ import annotations

EVERYWHERE = ""  # every address of the machine, IPv4 and IPv6


def find_address_problem(text: str) -> str:
    """What is wrong with an address; "" if nothing is."""
    host, _, port = text.rpartition(":")
    if not is_port(port):
        return f"expected HOST:PORT such as 127.0.0.1:8080, or :8080 for all addresses, got {text!r}."
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return f"expected an IPv6 address in brackets, such as [::1]:8080, got {text!r}."
    return ""


def read_address(text: str) -> tuple[str, int]:
    """Host and port of an address without problems."""
    host, _, port = text.rpartition(":")
    return host.strip("[]") or EVERYWHERE, int(port)


def is_port(text: str) -> bool:
    """Tell whether it is the number of a port, 0 included. Not by isdigit alone: that holds of ² as well."""
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535
