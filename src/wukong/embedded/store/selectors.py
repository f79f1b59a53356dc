"""Label and field selectors of lists and watches: parsed once from kubectl's syntax, matched often.

Called by server.py and store.py. A selector that cannot be parsed is refused as the API server refuses it (400).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import meta_of, value_at
from wukong.embedded.store.kinds import ServedKind
from wukong.ports import Document, Selection
from wukong.semantics.selectors import Requirement, is_valid, selects

_SET_TERM = re.compile(r"(?P<key>[^\s=!,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARISON_TERM = re.compile(r"(?P<key>[^\s=!,()<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s=!,()<>]*)")
_EXISTENCE_TERM = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s=!,()]+)")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_FIELD_TERM = re.compile(r"(?P<path>[^=!]*)(?P<operator>==|=|!=)(?P<value>.*)", re.DOTALL)
_COMMA = re.compile(r"(?<!\\),")
_ESCAPED = re.compile(r"\\([\\,=])")
_UNESCAPED = re.compile(r"(?<!\\)=")
_ZERO_VALUES = {
    "spec.unschedulable": False,
    "spec.hostNetwork": False,
    "status.replicas": 0,
}  # what Go reads from nothing


class FieldRequirement(NamedTuple):
    path: str
    value: str
    is_equal: bool

    def matches(self, document: Document) -> bool:
        value = value_at(document, self.path)
        return (_text_of(_ZERO_VALUES.get(self.path) if value is None else value) == self.value) == self.is_equal


class Selector(NamedTuple):
    namespace: str
    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]

    @property
    def selects_all(self) -> bool:
        return not (self.namespace or self.labels or self.fields)

    def selects(self, document: Document) -> bool:
        meta = meta_of(document)
        return (
            self.namespace in ("", meta.get("namespace", ""))
            and selects(self.labels, meta.get("labels") or {})
            and all(field.matches(document) for field in self.fields)
        )


def parse_selection(kind: ServedKind, selection: Selection) -> Selector:
    """Parse both selectors. Raises Invalid where one cannot be parsed or names a field this kind does not offer."""
    return Selector(
        selection.namespace, parse_label_selector(selection.labels), parse_field_selector(kind, selection.fields)
    )


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    requirements: list[Requirement] = []
    position = 0
    while text[position:].strip():
        rest = text[position:].lstrip()
        match = _SET_TERM.match(rest) or _COMPARISON_TERM.match(rest) or _EXISTENCE_TERM.match(rest)
        requirement = _build_label_requirement(match) if match else None
        after = rest[match.end() :].lstrip() if match else ""
        if requirement is None or not is_valid(*requirement) or (after and not after.startswith(",")):
            raise bad_request(f'unable to parse requirement: "{text}" is no label selector')
        requirements.append(requirement)
        position = len(text) - len(after) + 1 if after else len(text)
        if after and not text[position:].strip():
            raise bad_request(f'unable to parse requirement: "{text}" ends with a comma')
    return tuple(requirements)


def parse_field_selector(kind: ServedKind, text: str) -> tuple[FieldRequirement, ...]:
    return tuple(_parse_field_requirement(kind, term) for term in _COMMA.split(text) if term.strip())


def _build_label_requirement(match: re.Match[str]) -> Requirement:
    groups = match.groupdict()
    if "values" in groups:
        values = frozenset(value.strip() for value in groups["values"].split(","))
        return groups["key"], _OPERATORS[groups["operator"]], values
    if "operator" in groups:
        return groups["key"], _OPERATORS[groups["operator"]], frozenset((groups["value"],))
    return groups["key"], "DoesNotExist" if groups["not"] else "Exists", frozenset()


def _parse_field_requirement(kind: ServedKind, term: str) -> FieldRequirement:
    match = _FIELD_TERM.fullmatch(term.strip())
    if match is None or _UNESCAPED.search(match["value"]):
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path = match["path"].strip()
    if path not in kind.fields:
        raise bad_request(f'Unable to find "{kind.resource.api_version}, Resource={kind.resource.plural}" that match '
                          f'field selector "{term}": field label not supported: {path}')  # fmt: skip
    return FieldRequirement(path, _ESCAPED.sub(r"\1", match["value"]), match["operator"] != "!=")


def _text_of(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
