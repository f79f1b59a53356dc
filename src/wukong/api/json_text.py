"""Looks at JSON text without reading it: its parts, its depth, and where it is nested too deeply. Pure; never recurses.

A JSON decoder recurses, so a text nested a thousand levels cannot even be skipped by it. Used for what a decoder has
given up on, and by unreadable.py to bound documents that are read whole. It takes about 15 ms for the largest object
that an API server stores (1.5 MB), whatever is in it: the text is looked at as an array, never byte by byte.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from wukong.api.documents import path_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_DEPTH = 100  # levels that an object may have; those of Kubernetes have a dozen
_MOST_STEPS = 8  # of a path in a message
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_MEMBER = re.compile(rb"\s*(" + _STRING + rb")\s*:(.*)", re.DOTALL)
_LAST_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*\Z', re.DOTALL)
_LONGEST_KEY = 1024  # bytes before a colon that are looked at for a message
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_too_deep(data: bytes) -> bool:
    """Whether a text is nested deeper than MOST_DEPTH. Quick: most texts have too few brackets for that."""
    if data.count(b"{") + data.count(b"[") <= MOST_DEPTH:
        return False
    return bool((_Outline(data).depths > MOST_DEPTH).any())


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each value as its text; none if it is no object. However deep it is."""
    try:
        return {name: bytes(value) for name, value in _raw_members.decode(data).items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        matches = (_MEMBER.fullmatch(part) for part in split_container(data)) if data.lstrip()[:1] == b"{" else ()
        return {_text_of(match[1]): match[2].strip() for match in matches if match}


def split_container(data: bytes) -> list[bytes]:
    """The elements of a JSON array, or the members of an object, each as its text. However deep they are."""
    outline = _Outline(data)
    first = outline.find(outline.is_opening & (outline.depths == 1))
    if first is None:
        return []
    last = outline.find(outline.is_closing & (outline.depths == 0), after=first)
    commas = outline.is_comma & (outline.depths == 1)
    ends = outline.positions[first:last][commas[first:last]].tolist()
    if last is not None:
        ends.append(int(outline.positions[last]))
    starts = [int(outline.positions[first]) + 1, *(end + 1 for end in ends)]
    parts = (data[start:end].strip() for start, end in zip(starts, ends, strict=False))
    return [part for part in parts if part]


def is_whole(data: bytes) -> bool:
    """Whether a text is one JSON object or array as far as its brackets and quotes tell: nothing of it was cut off."""
    outline = _Outline(data)
    end = outline.find(outline.depths <= 0)
    is_last = end is not None and end == outline.depths.size - 1 and not data[int(outline.positions[end]) + 1 :].strip()
    return is_last and data.lstrip()[:1] in (b"{", b"[") and not outline.ends_in_string


def find_deep_path(data: bytes) -> str:
    """The beginning of the path to the first place deeper than MOST_DEPTH; `$` if there is none."""
    outline = _Outline(data)
    deep = outline.find(outline.depths > MOST_DEPTH)
    if deep is None:
        return "$"
    path, begin = "$", 0
    for level in range(1, _MOST_STEPS + 1):
        opened = outline.is_opening[begin:deep] & (outline.depths[begin:deep] == level)
        begin += int(opened.nonzero()[0][-1])  # the last one before: the container that the deep place is in
        step = outline.find_step(data, begin, deep, level)
        path = f"{path}[{step}]" if isinstance(step, int) else path_of(path, step[:63])
    return f"{path}…"


class _Outline:
    """Where the brackets, commas and colons of a text are that stand outside its strings, and the depth after each."""

    def __init__(self, data: bytes) -> None:
        import numpy as np  # not before it is needed: most commands never are here

        text = np.frombuffer(data, dtype=np.uint8)
        is_outside = np.cumsum(_find_quotes(np, text), dtype=np.uint8) & 1 == 0
        self.ends_in_string = bool(text.size) and not is_outside[-1]
        is_token = np.zeros(256, dtype=np.bool_)
        is_token[list(b"{}[],:")] = True
        self.positions: NDArray[np.int64] = np.flatnonzero(is_token[text] & is_outside)
        tokens = text[self.positions]
        self.is_comma, self.is_colon = tokens == ord(","), tokens == ord(":")
        self.is_array = tokens == ord("[")
        self.is_opening, self.is_closing = (tokens & 0xDF) == 0x5B, (tokens & 0xDF) == 0x5D  # { is [ with another bit
        self.depths = np.cumsum(self.is_opening.astype(np.int32) - self.is_closing, dtype=np.int32)

    def find(self, mask: NDArray[np.bool_], after: int = -1) -> int | None:
        """The number of the first token of the mask that comes after this one."""
        rest = mask[after + 1 :]
        number = int(rest.argmax()) if rest.size else 0
        return number + after + 1 if rest.size and rest[number] else None

    def find_step(self, data: bytes, begin: int, end: int, level: int) -> str | int:
        """Which element of the container that opens at token `begin`, on this level, token `end` is in."""
        is_here = self.depths[begin:end] == level
        if self.is_array[begin]:
            return int((self.is_comma[begin:end] & is_here).sum())
        colons = (self.is_colon[begin:end] & is_here).nonzero()[0]
        if not colons.size:
            return ""
        colon = int(self.positions[begin + int(colons[-1])])
        match = _LAST_STRING.search(data[max(0, colon - _LONGEST_KEY) : colon])
        return match[1].decode("utf-8", "replace") if match else ""


def _find_quotes(np: Any, text: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which bytes begin or end a string: quotes before which there is an even number of backslashes."""
    is_quote: NDArray[np.bool_] = text == ord('"')
    is_backslash = text == ord("\\")
    is_doubtful = is_quote.copy()
    is_doubtful[1:] &= is_backslash[:-1]
    is_doubtful[:1] = False
    doubtful = np.flatnonzero(is_doubtful)
    if doubtful.size:
        last_other = np.maximum.accumulate(np.where(is_backslash, -1, np.arange(text.size)))
        is_quote[doubtful] = (doubtful - 1 - last_other[doubtful - 1]) % 2 == 0
    return is_quote


def _text_of(string: bytes) -> str:
    return string[1:-1].decode("utf-8", "replace")
