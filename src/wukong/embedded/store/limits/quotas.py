"""ResourceQuotas at admission: whether a new or changed object fits, and the quotas charged for it.

Follows kube-apiserver's admission plugin ResourceQuota (1.35), message by message. It goes by a quota's status, which
the quota controller keeps (actors/resource_quota): a quota without a status counts nothing yet, and what was charged
comes back only when that controller counts again. Where several quotas refuse, a real server names any of them; here
the first by name. Called by writes.py; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from wukong.api.quota import ResourceQuota, ScopedSelectorRequirement
from wukong.embedded.store.documents import meta_of, value_at
from wukong.embedded.store.limits.amounts import (
    Amount,
    Amounts,
    add_amounts,
    describe_amounts,
    format_amounts,
    parse_amounts,
    select_amounts,
)
from wukong.embedded.store.limits.usage import Evaluator, evaluator_of, find_missing_resources
from wukong.ports import Document


class Verdict(NamedTuple):
    """Why an object is refused, by each quota that does, the first counts; or the quotas charged for it."""

    refusals: Sequence[str] = ()
    charged: Sequence[Document] = ()


ADMITTED = Verdict()


def judge(store_name: str, quotas: Sequence[Document], after: Document, before: Document | None = None) -> Verdict:
    """Judge a new object, or one that changes from `before`; `quotas` are those of its namespace."""
    evaluator = evaluator_of(store_name)
    interested = [quota for quota in quotas if _is_interested(quota, evaluator, after)]
    if not interested:
        return ADMITTED
    problems = [problem for quota in interested for problem in _find_problems(quota, evaluator, after, store_name)]
    if problems:
        return Verdict(problems)
    usage = evaluator.measure(after)
    growth = _subtract(usage, evaluator.measure(before)) if before is not None else usage
    refusals, charged = list[str](), list[Document]()
    for quota in interested:
        is_new = before is None or not _is_interested(quota, evaluator, before)
        added = {name: amount for name, amount in (usage if is_new else growth).items() if amount.nanos}
        refusal, changed = _charge(quota, select_amounts(added, _hard_of(quota)))
        refusals += [refusal] if refusal else []
        charged += [changed] if changed is not quota else []
    return Verdict(refusals) if refusals else Verdict((), charged)


def list_scopes(quota: Document) -> list[ScopedSelectorRequirement]:
    """What a quota asks of the objects that it counts."""
    spec = msgspec.convert(quota.get("spec") or {}, type(ResourceQuota().spec))
    scopes = [ScopedSelectorRequirement(scope_name=scope, operator="Exists") for scope in spec.scopes]
    return [*scopes, *(spec.scope_selector.match_expressions if spec.scope_selector is not None else ())]


def _hard_of(quota: Document) -> Document:
    hard: Document = value_at(quota, "status.hard") or {}
    return hard


def _is_interested(quota: Document, evaluator: Evaluator, document: Document) -> bool:
    return any(map(evaluator.counts, _hard_of(quota))) and evaluator.matches(list_scopes(quota), document)


def _find_problems(quota: Document, evaluator: Evaluator, document: Document, store_name: str) -> Iterator[str]:
    """What must be so before anything can be counted."""
    name, counted = meta_of(quota)["name"], evaluator.select_counted(_hard_of(quota))
    missing = find_missing_resources(document, counted) if store_name == "pods" else ""
    if missing:
        yield f"failed quota: {name}: {missing}"
    elif not set(counted) <= (value_at(quota, "status.used") or {}).keys():
        yield f"status unknown for quota: {name}, resources: {','.join(counted)}"


def _subtract(after: Mapping[str, Amount], before: Mapping[str, Amount]) -> Amounts:
    """How much more it takes than before; what it no longer takes is given back by the quota controller."""
    nothing = Amount(0)
    return {name: Amount(amount.nanos - before.get(name, nothing).nanos, amount.form) for name, amount in after.items()}


def _charge(quota: Document, added: Amounts) -> tuple[str, Document]:
    """The refusal, or "" and the quota with more of it used; the same one where nothing is added."""
    added = {name: amount for name, amount in added.items() if amount.nanos > 0}
    if not added:
        return "", quota
    used, hard = parse_amounts(value_at(quota, "status.used")), parse_amounts(_hard_of(quota))
    total = dict(used)
    add_amounts(total, added)
    exceeded = [name for name in added if name in hard and total[name].nanos > hard[name].nanos]
    if exceeded:
        requested, taken, limited = (
            describe_amounts(select_amounts(amounts, exceeded)) for amounts in (added, used, hard)
        )
        quota_name = meta_of(quota)["name"]
        return f"exceeded quota: {quota_name}, requested: {requested}, used: {taken}, limited: {limited}", quota
    return "", {**quota, "status": {**quota["status"], "used": format_amounts(total)}}
