"""A patch or manifest whose affinity takes the place of rules that are there: affinity lists are replaced as a whole.

Of a patch every rule that is gone is told: `add /spec/template/spec/affinity` reads as if it added one. Who applies a
manifest changes rules all the time; there it is told only where fewer are left than before.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, WrittenObject
from wukong.ports import Document

CODE = "patch-drops-rules"
_PATH = "$.spec.template.spec.affinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_encode = msgspec.json.Encoder(order="sorted").encode


def find(situation: Situation) -> Iterator[PlanWarning]:
    for entry in situation.written:
        before, after = _list_rules(entry.before), _list_rules(entry.after)
        dropped, added = before - after, after - before
        if not dropped or not after:
            continue  # whoever removes them all means it
        if _is_replacing_patch(entry) or (entry.patch is None and dropped.total() > added.total()):
            yield _warn(entry, dropped)


def _is_replacing_patch(entry: WrittenObject) -> bool:
    """Whether a patch writes rules; one that only removes some says what it does."""
    if entry.patch is None:
        return False
    if entry.patch.type != "json":
        return True
    operations = entry.patch.body if isinstance(entry.patch.body, list) else []
    return any(isinstance(operation, dict) and operation.get("op") in ("add", "replace") for operation in operations)


def _list_rules(document: Document | None) -> Tally[tuple[str, bytes]]:
    """The rules of a template's affinity: where each stands, and its JSON."""
    affinity = _value_at(document, "spec", "template", "spec", "affinity")
    rules: Tally[tuple[str, bytes]] = Tally()
    for side in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        required = _value_at(affinity, side, _REQUIRED)
        if side == "nodeAffinity":
            required = _value_at(required, "nodeSelectorTerms")
        for name, terms in (("required", required), ("preferred", _value_at(affinity, side, _PREFERRED))):
            for term in terms if isinstance(terms, list) else ():
                rules[f"{name} {side}", _encode(term)] += 1
    return rules


def _value_at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _warn(entry: WrittenObject, dropped: Tally[tuple[str, bytes]]) -> PlanWarning:
    kinds = Tally(place for place, _ in dropped.elements())
    rules = ", ".join(f"{number} {place}" for place, number in sorted(kinds.items()))
    count = f"{dropped.total()} rules that are" if dropped.total() != 1 else "1 rule that is"
    how = "patch" if entry.patch is not None else "manifest"
    return PlanWarning(
        code=CODE,
        subject=entry.subject,
        path=_PATH,
        text=f"the {how} takes the place of {count} there and not in it ({rules}): lists of rules are replaced whole.",
        fix="Write the rules that shall stay into it, too.",
    )
