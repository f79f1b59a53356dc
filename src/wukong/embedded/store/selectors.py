"""Which objects a list or a watch is about: label and field selectors in kubectl's syntax, read once, asked often.

Called by server.py and watching.py. A selector that cannot be read is refused as the API server refuses it (400).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import at, meta_of
from wukong.embedded.store.kinds import Kind
from wukong.ports import Document, Selection
from wukong.semantics.selectors import Requirement, is_valid, selects

_SET = re.compile(r"(?P<key>[^\s=!,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARED = re.compile(r"(?P<key>[^\s=!,()<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s=!,()<>]*)")
_PRESENT = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s=!,()]+)")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_FIELD = re.compile(r"(?P<path>[^=!]*)(?P<operator>==|=|!=)(?P<value>.*)", re.DOTALL)
_COMMA = re.compile(r"(?<!\\),")
_ESCAPED = re.compile(r"\\([\\,=])")
_UNESCAPED = re.compile(r"(?<!\\)=")
_ABSENT = {"spec.unschedulable": False, "spec.hostNetwork": False, "status.replicas": 0}  # what Go reads from nothing


class FieldRequirement(NamedTuple):
    path: str
    value: str
    is_equal: bool

    def holds(self, document: Document) -> bool:
        found = at(document, self.path)
        return (_text(_ABSENT.get(self.path) if found is None else found) == self.value) == self.is_equal


class Selector(NamedTuple):
    namespace: str
    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]

    def selects(self, document: Document) -> bool:
        meta = meta_of(document)
        return (
            self.namespace in ("", meta.get("namespace", ""))
            and selects(self.labels, meta.get("labels") or {})
            and all(field.holds(document) for field in self.fields)
        )


def read(kind: Kind, selection: Selection) -> Selector:
    """Raises Invalid where a selector cannot be read or names a field this kind cannot be selected by."""
    return Selector(selection.namespace, read_labels(selection.labels), read_fields(kind, selection.fields))


def read_labels(text: str) -> tuple[Requirement, ...]:
    found: list[Requirement] = []
    position = 0
    while text[position:].strip():
        rest = text[position:].lstrip()
        match = _SET.match(rest) or _COMPARED.match(rest) or _PRESENT.match(rest)
        requirement = _requirement(match) if match else None
        after = rest[match.end() :].lstrip() if match else ""
        if requirement is None or not is_valid(*requirement) or (after and not after.startswith(",")):
            raise bad_request(f'unable to parse requirement: "{text}" is no label selector')
        found.append(requirement)
        position = len(text) - len(after) + 1 if after else len(text)
        if after and not text[position:].strip():
            raise bad_request(f'unable to parse requirement: "{text}" ends with a comma')
    return tuple(found)


def read_fields(kind: Kind, text: str) -> tuple[FieldRequirement, ...]:
    return tuple(_field(kind, term) for term in _COMMA.split(text) if term.strip())


def _requirement(match: re.Match[str]) -> Requirement:
    found = match.groupdict()
    if "values" in found:
        values = frozenset(each.strip() for each in found["values"].split(","))
        return found["key"], _OPERATORS[found["operator"]], values
    if "operator" in found:
        return found["key"], _OPERATORS[found["operator"]], frozenset((found["value"],))
    return found["key"], "DoesNotExist" if found["not"] else "Exists", frozenset()


def _field(kind: Kind, term: str) -> FieldRequirement:
    match = _FIELD.fullmatch(term.strip())
    if match is None or _UNESCAPED.search(match["value"]):
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path = match["path"].strip()
    if path not in kind.fields:
        raise bad_request(f'Unable to find "{kind.resource.api_version}, Resource={kind.resource.plural}" that match '
                          f'field selector "{term}": field label not supported: {path}')  # fmt: skip
    return FieldRequirement(path, _ESCAPED.sub(r"\1", match["value"]), match["operator"] != "!=")


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
