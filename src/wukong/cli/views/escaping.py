"""Makes texts of a cluster or a file harmless on a terminal: what would move its cursor, colour it or turn its writing
round is shown as an escape such as \\x1b.

Called where something is printed (console.py, the errors in main.py, the log of `wukong run`), not where messages are
made. It imports next to nothing: main.py needs it before any verb.
"""

from __future__ import annotations

import re

# C0 but newline and tab, DEL, C1; what directs the direction of writing or is not visible; separators of lines; halves
# of surrogate pairs, which no terminal can be sent; tags.
_HARMFUL = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_HARMFUL}]")
_IN_LINE = re.compile(f"[\n\t{_HARMFUL}]")
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str) -> str:
    """Return a text that may have several lines, without control characters but newlines and tabs."""
    return text if text.isprintable() else _IN_TEXT.sub(_describe, text)


def escape_line(text: str) -> str:
    """Return a text for one line or one cell of a table: newlines and tabs are escaped, too."""
    return text if text.isprintable() else _IN_LINE.sub(_describe, text)


def escape_json(text: str) -> str:
    """Return JSON that means the same, with escapes for what JSON leaves as it is: DEL, C1, directions of writing."""
    return _IN_TEXT.sub(_describe_in_json, text)


def has_harmful(text: str) -> bool:
    return _IN_TEXT.search(text) is not None


def _describe(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMES:
        return _NAMES[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _describe_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
