"""The syntax of label keys, label values and the integers that Gt and Lt compare.

Used by the selectors, which refuse to match what is written wrongly, and by the validation of manifests. Knows
nothing about pods or nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

Labels = Mapping[str, str]

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")  # more digits are more than 64 bits
_NAME_LENGTH = 63
_SUBDOMAIN_LENGTH = 253
_KEY_LENGTH = _SUBDOMAIN_LENGTH + 1 + _NAME_LENGTH
_INT64 = 2**63
_MOST_CACHED = 8192  # clusters use the same few keys and values again and again; what is too long is not kept


def is_label_key(text: str) -> bool:
    """`name` or `prefix/name`, where the prefix is a DNS subdomain. Resource names follow the same rule."""
    return len(text) <= _KEY_LENGTH and _is_key(text)


def is_label_value(text: str) -> bool:
    """Empty, or like the name of a key."""
    return len(text) <= _NAME_LENGTH and _is_value(text)


@lru_cache(_MOST_CACHED)
def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and len(name) <= _NAME_LENGTH and _NAME.fullmatch(name) is not None


@lru_cache(_MOST_CACHED)
def _is_value(text: str) -> bool:
    return text == "" or _NAME.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def parse_integer(text: str) -> int | None:
    """The decimal 64-bit integer that Go reads from this text: "007" is 7. None for anything else, such as "1e3"."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -_INT64 <= number < _INT64 else None
