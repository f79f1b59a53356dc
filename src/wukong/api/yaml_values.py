"""From YAML text to the values that JSON would have: the only reader of YAML. Pure; knows no kinds.

It goes by the parser's events and builds the values itself. PyYAML's own composer recurses in C, where 100,000
brackets end the process, and lets aliases multiply: 425 bytes become gigabytes. Here all of that has a budget:

    depth       MOST_DEPTH lists and maps within each other
    aliases     each is a copy; all copies of a text together weigh at most MOST_ALIASED, and none is made before a
                document is complete, so that one that is refused costs next to nothing
    numbers     MOST_DIGITS characters

Names are texts, and so are times, as Kubernetes reads them. What JSON cannot say (sets, bytes, tags of others, a list
as a name) and a name that is there twice are refused. A problem is an InputError with line, column and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from wukong.api.text_encoding import locate
from wukong.errors import InputError

MOST_DEPTH = 200  # CustomResourceDefinitions, the deepest objects people write, have some 60
MOST_ALIASED = 8 << 20  # a value weighs _VALUE and its text: some 100,000 values
MOST_DIGITS = 400  # what the longest float that is written without an exponent has
_VALUE = 64
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MERGE = object()  # the name `<<`
_COLLECTIONS = (None, "!", f"{_TAG}map", f"{_TAG}seq")


def load_documents(data: bytes | str) -> list[Any]:
    """Return every document of a YAML text, None for an empty one. Raises InputError that says where it is broken."""
    builder = _Builder()
    try:
        for event in yaml.parse(data, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        raise InputError(f"broken YAML: {_describe(error, data)}.") from None
    except UnicodeError:  # a lone half of a surrogate pair, in a text that was given as such
        raise InputError("broken YAML: expected UTF-8 text. Save the file as UTF-8.") from None
    return builder.documents


def _describe(error: yaml.YAMLError, data: bytes | str) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is not None:
        return f"{_place(mark)}: {problem}"
    if isinstance(error, yaml.reader.ReaderError):
        raw = data.encode(errors="replace") if isinstance(data, str) else data
        return f"{locate(raw, error.position)}: {error.reason}. Save the file as UTF-8 without control characters"
    return str(problem or error)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _refuse(mark: Any, problem: str) -> InputError:
    return InputError(f"broken YAML: {_place(mark)}: {problem}")


class _Frame:
    """A list or map that is not complete yet."""

    __slots__ = ("anchor", "height", "key", "merged", "value", "weight")

    def __init__(self, value: Any, anchor: str | None, weight: int) -> None:
        self.value, self.anchor, self.weight = value, anchor, weight  # weight: that of the text before it
        self.key: Any = None  # of a map: the name whose value comes next
        self.merged: list[Any] | None = None  # of a map: what `<<` brings
        self.height = 1


class _AnchoredValue:
    """A value that aliases may copy; `is_open` while it is being read."""

    __slots__ = ("height", "is_open", "value", "weight")

    def __init__(self, value: Any, weight: int, height: int, is_open: bool) -> None:
        self.value, self.weight, self.height, self.is_open = value, weight, height, is_open


class _Builder:
    """Takes the events of a text, one by one, and keeps the documents."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _AnchoredValue] = {}
        self._plain: dict[str, Any] = {}  # text → value, of what is not quoted: names and words come again and again
        self._weight = 0  # of all that has been read, copies included
        self._aliased = 0
        self._has_aliases = False  # the document that is being read: some of its values stand in several places

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is ScalarEvent:
            self._take_scalar(event)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            self._open(event, {} if kind is MappingStartEvent else [])
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            self._close(event)
        elif kind is AliasEvent:
            self._take_alias(event)
        elif kind is DocumentStartEvent:
            self._anchors.clear()
        elif kind is DocumentEndEvent and self._has_aliases:
            self.documents[-1] = _copy(self.documents[-1])
            self._has_aliases = False

    def _take_scalar(self, event: Any) -> None:
        text: str = event.value
        tag: str | None = event.tag
        if tag is None and event.implicit[0]:
            try:
                value = self._plain[text]
            except KeyError:
                value = self._plain[text] = _read_plain(text, event.start_mark)
        else:
            value = text if tag is None or tag == "!" else _read_tagged(text, tag, event.start_mark)
        self._weight += _VALUE + len(text)
        if event.anchor is not None:
            scalar = text if value is _MERGE else value
            self._anchors[event.anchor] = _AnchoredValue(scalar, _VALUE + len(text), 0, is_open=False)
        self._add(value, event)

    def _open(self, event: Any, value: Any) -> None:
        if event.tag not in _COLLECTIONS:
            raise _refuse(event.start_mark, f"expected a plain list or map, got the tag {event.tag!r:.60}. Remove it.")
        if len(self._frames) >= MOST_DEPTH:
            raise _refuse(event.start_mark, f"nested too deeply, more than {MOST_DEPTH} levels. Flatten it.")
        self._frames.append(_Frame(value, event.anchor, self._weight))
        self._weight += _VALUE
        if event.anchor is not None:
            self._anchors[event.anchor] = _AnchoredValue(None, 0, 0, is_open=True)

    def _close(self, event: Any) -> None:
        frame = self._frames.pop()
        if frame.merged is not None:
            for source in frame.merged:  # what is written here wins, then what was merged first
                for name, value in source.items():
                    frame.value.setdefault(name, value)
        if frame.anchor is not None:
            weight = self._weight - frame.weight
            self._anchors[frame.anchor] = _AnchoredValue(frame.value, weight, frame.height, is_open=False)
        if self._frames:
            parent = self._frames[-1]
            parent.height = max(parent.height, frame.height + 1)
        self._add(frame.value, event)

    def _take_alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        mark = event.start_mark
        if anchored is None:
            raise _refuse(mark, f"there is no anchor &{event.anchor:.60} before this alias. Write the value out.")
        if anchored.is_open:
            raise _refuse(mark, f"*{event.anchor:.60} is within itself. Write the value out.")
        self._aliased += anchored.weight
        self._weight += anchored.weight
        if self._aliased > MOST_ALIASED:
            raise _refuse(mark, "its aliases multiply to too many values. Write the values out, or have fewer.")
        if len(self._frames) + anchored.height > MOST_DEPTH:
            raise _refuse(mark, f"nested too deeply by its aliases, more than {MOST_DEPTH} levels. Flatten it.")
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, anchored.height + 1)
        self._has_aliases = True
        self._add(anchored.value, event)

    def _add(self, value: Any, event: Any) -> None:
        """Put a complete value into the list or map around it."""
        if not self._frames:
            self.documents.append("<<" if value is _MERGE else value)
            return
        frame = self._frames[-1]
        if type(frame.value) is list:
            frame.value.append("<<" if value is _MERGE else value)
        elif frame.key is None:
            frame.key = value if value is _MERGE else self._read_name(value, frame.value, event)
        elif frame.key is _MERGE:
            frame.key = None
            self._merge(value, frame, event)
        else:
            frame.value[frame.key] = "<<" if value is _MERGE else value
            frame.key = None

    def _read_name(self, value: Any, entries: dict[str, Any], event: Any) -> str:
        name = value if type(value) is str else _name_of(value, event)
        if name in entries:
            problem = f"{name!r:.100} is there twice in one map. Remove one of the two."
            raise _refuse(event.start_mark, problem)
        return name

    def _merge(self, value: Any, frame: _Frame, event: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _refuse(event.start_mark, "expected a map or a list of maps after <<. Name one by an alias.")
        frame.merged = [*(frame.merged or ()), *sources]


def _name_of(value: Any, event: Any) -> str:
    """Return a name that looks like a number or a truth value as JSON would have it."""
    if isinstance(value, dict | list):
        raise _refuse(event.start_mark, "expected a name, got a list or map. Only texts are names.")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(entry) for name, entry in value.items()}
    return [_copy(entry) for entry in value] if type(value) is list else value


# Scalars ----------------------------------------------------------------------------------------------------------


def _read_plain(text: str, mark: Any) -> Any:
    """Return what a text without quotes means."""
    for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return _MERGE if tag == f"{_TAG}merge" else _read_tagged(text, tag, mark)
    return text


def _read_tagged(text: str, tag: str, mark: Any) -> Any:
    read = _SCALARS.get(tag.removeprefix(_TAG))
    if read is None or not tag.startswith(_TAG):
        raise _refuse(mark, f"expected a plain value, got the tag {tag!r:.60}. Remove it.")
    if len(text) > MOST_DIGITS and read in (_read_int, _read_float):
        problem = f"expected a number of at most 64 bits, got {len(text):,} characters. Mend it, or put it in quotes."
        raise _refuse(mark, problem)
    try:
        return read(text)
    except (ValueError, LookupError):
        kind = tag.removeprefix(_TAG)
        raise _refuse(mark, f"expected {_WORDS[kind]}, got {text!r:.60}. Mend it, or put it in quotes.") from None


def _read_int(text: str) -> int | str:
    if ":" in text:
        return text  # base 60 in old YAML, a text in Kubernetes: 8:30
    digits = text.replace("_", "")
    unsigned = digits.lstrip("+-")
    base = {"0b": 2, "0x": 16}.get(unsigned[:2], 8 if unsigned[:1] == "0" and unsigned != "0" else 10)
    return int(digits, base)


def _read_float(text: str) -> float | str:
    if ":" in text:
        return text
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


def _read_bool(text: str) -> bool:
    return yaml.SafeLoader.bool_values[text.lower()]


_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing"}
_SCALARS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "null": lambda text: None,
    "timestamp": str,
    "value": str,
}
