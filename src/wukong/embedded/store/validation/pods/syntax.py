"""Checks of texts: names, label keys and values, addresses, paths, ports. Each yields problems at a path. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from wukong.embedded.store.validation.pods.problems import find_outside, invalid, required
from wukong.semantics.label_syntax import is_label_key, is_label_value, is_subdomain

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_NAME = re.compile(r"[a-z0-9-]{1,15}")
_ENV_NAME = re.compile(r"[ -<>-~]+")  # printable ASCII but '='
_NAME_FORM = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
_SUBDOMAIN_FORM = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
_KEY_FORM = "name part must consist of alphanumeric characters, '-', '_' or '.'"
_VALUE_FORM = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
HIGHEST_ID = 2**31 - 1


def is_name(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None


def find_name_problems(text: str, path: str) -> Iterator[str]:
    """A lowercase label, as names of containers and volumes are."""
    if not is_name(text):
        yield invalid(path, text, _NAME_FORM)


def find_subdomain_problems(text: str, path: str) -> Iterator[str]:
    if not is_subdomain(text):
        yield invalid(path, text, _SUBDOMAIN_FORM)


def find_key_problems(key: str, path: str) -> Iterator[str]:
    if not is_label_key(key):
        yield invalid(path, key, _KEY_FORM)


def find_label_problems(labels: dict[str, str] | None, path: str) -> Iterator[str]:
    """All of a map's problems are at the map's path."""
    for key, value in (labels or {}).items():
        yield from find_key_problems(key, path)
        if not is_label_value(value):
            yield invalid(path, value, _VALUE_FORM)


def find_address_problems(text: str, path: str) -> Iterator[str]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def find_port_problems(port: int | str, path: str) -> Iterator[str]:
    """A port by number or by name."""
    if isinstance(port, str):
        yield from find_port_name_problems(port, path)
    else:
        yield from find_outside(port, 1, 65535, path)


def find_port_name_problems(name: str, path: str) -> Iterator[str]:
    is_valid = _PORT_NAME.fullmatch(name) and re.search("[a-z]", name) and "--" not in name and name.strip("-") == name
    if not is_valid:
        yield invalid(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")


def find_variable_problems(name: str, path: str) -> Iterator[str]:
    if not name:
        yield required(path)
    elif not _ENV_NAME.fullmatch(name):
        form = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid(path, name, form)


def find_local_path_problems(text: str, path: str, *, is_reserved: bool = False) -> Iterator[str]:
    """A path that stays below where it starts. With `is_reserved` it may not begin with two dots either."""
    if text.startswith("/"):
        yield invalid(path, text, "must be a relative path")
    yield from find_backstep_problems(text, path)
    if is_reserved and text.startswith("..") and ".." not in text.split("/"):
        yield invalid(path, text, "must not start with '..'")


def find_backstep_problems(text: str, path: str) -> Iterator[str]:
    if ".." in text.split("/"):
        yield invalid(path, text, "must not contain '..'")


def find_id_problems(value: Any, path: str) -> Iterator[str]:
    """The number of a user or a group."""
    yield from find_outside(value, 0, HIGHEST_ID, path)
