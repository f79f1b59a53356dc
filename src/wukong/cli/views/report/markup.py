"""HTML whose texts are harmless: whatever is not `Html` is text, and escaped. Used by all of the report.

tag("td", name, class_="name")      <td class="name">&lt;script&gt;</td>
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape as escape_html
from typing import Any

import msgspec

from wukong.cli.views.escaping import escape, escape_json, escape_line

_LONGEST_TEXT = 5_000  # of one message: a cluster may say anything
_VOID = ("br", "col", "input", "link", "meta")
_FOR_HTML = re.compile(r"[<>&]")


class Html(str):
    """Text that is HTML already; only this module makes it of anything else."""

    __slots__ = ()


Child = Html | str | int | None


def tag(name: str, /, *children: Child | Iterable[Child], **attributes: str | float | bool | None) -> Html:
    """An element. Attributes that are None or False are left out; `class_` is class, `data_x` is data-x."""
    words = "".join(_format_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{join(*children)}</{name}>")


def join(*children: Child | Iterable[Child]) -> Html:
    """One after the other."""
    return Html("".join(_render(child) for child in children))


def paragraphs(text: str) -> Html:
    """A text of several lines as it is: for a <pre>."""
    return Html(escape_html(escape(text[:_LONGEST_TEXT])))


def embed_json(value: Any) -> Html:
    """JSON for a <script>: nothing in it can end that, or be read as HTML."""
    text = escape_json(msgspec.json.encode(value).decode())
    return Html(_FOR_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def trust(text: str) -> Html:
    """For our own style and script, which no cluster has a say in."""
    return Html(text)


def _render(child: Child | Iterable[Child]) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return _escape(child)
    if isinstance(child, int):
        return f"{child:,}"
    return join(*child)


def _escape(text: str) -> str:
    shown = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
    return escape_html(escape_line(shown), quote=True)


def _format_attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{_escape(text)}"'
