"""Rules of ours in the template of a workload: recognised, put, replaced and removed. Pure.

    placement.novasphere.dev/rules: '{"apart":{"list":"required…","entry":{…}}}'

This annotation of the template says which entries of its podAntiAffinity are ours, by their content (decision 023).
Whatever else is there stays as it was read, in its order. An entry that somebody changed since is no longer ours.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.placement import GROUP
from wukong.errors import InputError
from wukong.placement.workloads.rules import PREFERRED, REQUIRED, RULE_NAMES
from wukong.ports import Document

ANNOTATION = f"{GROUP}/rules"
AFFINITY, ANTI_AFFINITY = "affinity", "podAntiAffinity"
_LONGEST = 64 * 1024
_encode = msgspec.json.Encoder(order="sorted").encode


class OwnRule(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ours, and the list of podAntiAffinity in which it stands."""

    list: str
    entry: Document


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The annotation. `empty` are parts that were there and empty before the first rule of ours."""

    apart: OwnRule | None = None
    separate: OwnRule | None = None
    empty: list[str] = []

    @property
    def rules(self) -> dict[str, OwnRule]:
        rules = {name: getattr(self, name) for name in RULE_NAMES}
        return {name: rule for name, rule in rules.items() if rule is not None}


_decoder = msgspec.json.Decoder(Mark)


def find_own_rules(template: Document) -> dict[str, OwnRule]:
    """The rules of ours that are in the template, by name. What its mark names and is not there is nobody's."""
    lists = _read_lists(template)
    mark = _read_mark(template)
    return {name: rule for name, rule in mark.rules.items() if _find_index(lists, rule) is not None}


def set_rule(template: Document, name: str, rule: OwnRule) -> Document:
    """The template with this rule: in place of our former one of that name, else after all others.

    One that is there word for word and not ours stays the only one, and stays not ours.
    """
    lists, mark = _read_lists(template), _read_mark(template)
    former = mark.rules.get(name)
    index = _find_index(lists, former) if former is not None else None
    if former is not None and index is not None and former.list == rule.list:
        lists[rule.list] = [*lists[rule.list][:index], rule.entry, *lists[rule.list][index + 1 :]]
    else:
        if former is not None and index is not None:
            lists[former.list] = [*lists[former.list][:index], *lists[former.list][index + 1 :]]
        if _find_index(lists, rule) is not None:
            return _write(template, lists, msgspec.structs.replace(mark, **{name: None}))
        lists[rule.list] = [*lists.get(rule.list, ()), rule.entry]
    mark = mark if mark.rules else msgspec.structs.replace(mark, empty=_list_empty_parts(template))
    return _write(template, lists, msgspec.structs.replace(mark, **{name: rule}))


def remove_rule(template: Document, name: str) -> Document:
    """The template without our rule of that name; the same template if there is none. Nothing empty of ours stays."""
    lists, mark = _read_lists(template), _read_mark(template)
    former = mark.rules.get(name)
    if former is None:
        return template
    index = _find_index(lists, former)
    if index is not None:
        lists[former.list] = [*lists[former.list][:index], *lists[former.list][index + 1 :]]
    return _write(template, lists, msgspec.structs.replace(mark, **{name: None}))


def keep_marks(before: Document, after: Document) -> Document:
    """The template `after` with its mark set right: what advice made of a rule of ours is ours still.

    That is the entry in its place, or the same term as a preference. A rule that is gone is marked no more.
    """
    own, lists, mark = find_own_rules(before), _read_lists(after), _read_mark(after)
    former = _read_lists(before)
    for name, rule in own.items():
        index = _find_index(former, rule)
        entries = lists.get(rule.list, [])
        successor: OwnRule | None = None
        if index is not None and len(entries) == len(former[rule.list]):
            successor = OwnRule(list=rule.list, entry=entries[index])
        else:
            weighted = [entry for entry in lists.get(PREFERRED, ()) if entry.get("podAffinityTerm") == rule.entry]
            successor = OwnRule(list=PREFERRED, entry=weighted[-1]) if weighted else None
        mark = msgspec.structs.replace(mark, **{name: successor})
    return _write_mark(after, mark) if own else after


# ---- reading


def _read_lists(template: Document) -> dict[str, list[Any]]:
    """The lists of podAntiAffinity by their names. Raises InputError where the template has something else there."""
    rules = _read_map(_read_map(template.get("spec"), "spec").get(AFFINITY), AFFINITY).get(ANTI_AFFINITY)
    lists = {}
    for name, entries in _read_map(rules, ANTI_AFFINITY).items():
        if name in (REQUIRED, PREFERRED) and entries is not None:
            if not isinstance(entries, list):
                raise InputError(f"spec.template.spec.affinity.podAntiAffinity.{name}: expected a list of rules.")
            lists[name] = entries
    return lists


def _read_map(value: Any, name: str) -> Document:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"spec.template: {name}: expected an object, got {type(value).__name__}.")
    return value


def _read_mark(template: Document) -> Mark:
    """What cannot be read is no mark: then no rule is ours."""
    meta = template.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        return Mark()
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return Mark()


def _find_index(lists: dict[str, list[Any]], rule: OwnRule) -> int | None:
    """Where the rule stands: the last of equal ones, for ours come last."""
    wanted = _encode(rule.entry)
    entries = lists.get(rule.list, ())
    return max((index for index, entry in enumerate(entries) if _encode(entry) == wanted), default=None)


def _list_empty_parts(template: Document) -> list[str]:
    affinity = (template.get("spec") or {}).get(AFFINITY)
    if affinity == {}:
        return [AFFINITY]
    return [AFFINITY, ANTI_AFFINITY] if isinstance(affinity, dict) and affinity.get(ANTI_AFFINITY) == {} else []


# ---- writing


def _write(template: Document, lists: dict[str, list[Any]], mark: Mark) -> Document:
    spec: Document = template.get("spec") or {}
    affinity: Document = spec.get(AFFINITY) or {}
    before: Document = affinity.get(ANTI_AFFINITY) or {}
    rules = {name: lists.get(name, value) for name, value in before.items()}
    rules |= {name: entries for name, entries in lists.items() if name not in rules}
    emptied = [name for name, entries in rules.items() if entries == [] and before.get(name) != []]
    rules = {name: entries for name, entries in rules.items() if name not in emptied}
    affinity = _set_or_drop(affinity, ANTI_AFFINITY, rules, mark.empty)
    return _write_mark({**template, "spec": _set_or_drop(spec, AFFINITY, affinity, mark.empty)}, mark)


def _set_or_drop(parent: Document, name: str, value: Document, kept: list[str]) -> Document:
    if value or name in kept:
        return {**parent, name: value}
    return {other: part for other, part in parent.items() if other != name}


def _write_mark(template: Document, mark: Mark) -> Document:
    meta: Document = template.get("metadata") or {}
    annotations: Document = meta.get("annotations") or {}
    if mark.rules:
        annotations = {**annotations, ANNOTATION: _encode(mark).decode()}
    else:
        annotations = {name: text for name, text in annotations.items() if name != ANNOTATION}
    meta = {**meta, "annotations": annotations}
    if not annotations:
        del meta["annotations"]
    return {**template, "metadata": meta}
