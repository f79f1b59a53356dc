"""Looks at JSON text without reading it: its parts, its depth, and where it is nested too deeply. Pure; never recurses.

A JSON decoder recurses, so a text nested a thousand levels cannot even be skipped by it. Used for what a decoder has
given up on, and by unreadable.py to bound documents that are read whole.
"""

from __future__ import annotations

import re

import msgspec

from wukong.api.documents import path_of

MOST_DEPTH = 100  # levels that an object may have; those of Kubernetes have a dozen
_MOST_STEPS = 8  # of a path in a message
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_STRUCTURE = re.compile(_STRING + rb"|[][{},]", re.DOTALL)
_STEPS = re.compile(_STRING + rb"|[][{},:]", re.DOTALL)
_NOT_BRACKETS = re.compile(_STRING + rb"|[^][{}\"]+", re.DOTALL)
_MEMBER = re.compile(rb"\s*(" + _STRING + rb")\s*:(.*)", re.DOTALL)
_ALL_CURLY = bytes.maketrans(b"[]", b"{}")
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_too_deep(data: bytes) -> bool:
    """Whether a text is nested deeper than MOST_DEPTH. Quick: most texts have too few brackets for that."""
    if data.count(b"{") + data.count(b"[") <= MOST_DEPTH:
        return False
    brackets = _NOT_BRACKETS.sub(b"", data).translate(_ALL_CURLY)
    for _ in range(MOST_DEPTH):
        before = len(brackets)
        brackets = brackets.replace(b"{}", b"")  # the innermost level
        if len(brackets) == before:
            break
    return bool(brackets)


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each value as its text; none if it is no object. However deep it is."""
    try:
        return {name: bytes(value) for name, value in _raw_members.decode(data).items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        matches = (_MEMBER.fullmatch(part) for part in split_container(data)) if data.lstrip()[:1] == b"{" else ()
        return {_text_of(match[1]): match[2].strip() for match in matches if match}


def split_container(data: bytes) -> list[bytes]:
    """The elements of a JSON array, or the members of an object, each as its text. However deep they are."""
    parts, depth, start = list[bytes](), 0, 0
    for match in _STRUCTURE.finditer(data):
        position = match.start()
        token = data[position]
        if token in _OPENING:
            depth += 1
            start = position + 1 if depth == 1 else start
        elif token in _CLOSING:
            depth -= 1
            if depth == 0:
                parts.append(data[start:position].strip())
                break
        elif token == 0x2C and depth == 1:  # a comma
            parts.append(data[start:position].strip())
            start = position + 1
    return [part for part in parts if part]


def find_deep_path(data: bytes) -> str:
    """The beginning of the path to the first place deeper than MOST_DEPTH; `$` if there is none."""
    steps: list[str | int] = []  # of each open object the member at hand, of each open array the index
    text = b""
    for match in _STEPS.finditer(data):
        token = match[0][0]
        if token in _OPENING:
            steps.append("" if token == 0x7B else 0)
            if len(steps) > MOST_DEPTH:
                return _format_path(steps[:_MOST_STEPS])
        elif token in _CLOSING:
            if steps:
                steps.pop()
        elif token == 0x3A and steps:  # a colon
            steps[-1] = _text_of(text)
        elif token == 0x2C and steps and isinstance(index := steps[-1], int):  # a comma
            steps[-1] = index + 1
        else:
            text = match[0]
    return "$"


def _format_path(steps: list[str | int]) -> str:
    path = "$"
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else path_of(path, step[:63])
    return f"{path}…"


def _text_of(string: bytes) -> str:
    return string[1:-1].decode("utf-8", "replace")
