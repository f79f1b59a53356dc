"""The syntax of label keys, label values and the whole numbers that Gt and Lt compare.

Used by the selectors, which refuse to match what is written wrongly, and by the validation of manifests. Knows
nothing about pods or nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Labels = Mapping[str, str]

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WHOLE_NUMBER = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")
_NAME_LENGTH = 63
_SUBDOMAIN_LENGTH = 253


def is_label_key(text: str) -> bool:
    """`name` or `prefix/name`, where the prefix is a DNS subdomain. Resource names follow the same rule."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and len(name) <= _NAME_LENGTH and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Empty, or like the name of a key."""
    return text == "" or (len(text) <= _NAME_LENGTH and _NAME.fullmatch(text) is not None)


def is_subdomain(text: str) -> bool:
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def parse_whole_number(text: str) -> int | None:
    """The number Go reads from this text in base ten, if it fits 64 bits: "007" is 7, "1e3" is nothing."""
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is None:
        return None
    number = int(match["sign"] + match["digits"])
    return number if -(2**63) <= number < 2**63 else None
