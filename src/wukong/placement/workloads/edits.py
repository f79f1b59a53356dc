"""What is asked of a workload, and the document that it shall be. Pure.

Called by `wukong patch` and `wukong separate`, with the document as it was read: what is not asked for stays as it is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.errors import InputError
from wukong.placement.workloads.rules import FIRST_MINOR, Rule, RuleName, build_term, needs_label_keys
from wukong.placement.workloads.template_rules import OwnRule, remove_rule, set_rule
from wukong.ports import Document

Amount = int | str  # of pods: 1 or "25%"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """None: not asked for."""

    rule: Rule | None = None
    removed: RuleName | None = None  # this rule of ours goes
    replicas: int | None = None
    max_surge: Amount | None = None
    max_unavailable: Amount | None = None

    @property
    def is_empty(self) -> bool:
        return self == Edit()


def edit_workload(document: Document, edit: Edit, minor: int | None = None) -> Document:
    """The document as asked for; `minor` is the API server's, None where nobody knows. Raises InputError."""
    spec = _read_spec(document)
    if edit.rule is not None:
        _check_minor(edit.rule, minor)
        list_name, entry = build_term(edit.rule, document)
        spec["template"] = set_rule(spec["template"], edit.rule.name, OwnRule(list=list_name, entry=entry))
    if edit.removed is not None:
        spec["template"] = remove_rule(spec["template"], edit.removed)
    if edit.replicas is not None:
        spec["replicas"] = edit.replicas
    if edit.max_surge is not None or edit.max_unavailable is not None:
        spec["strategy"] = _edit_strategy(document, edit)
    return {**document, "spec": spec}


def _read_spec(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("template"), dict):
        raise InputError(f"{document.get('kind')}: expected a workload with spec.template.")
    return dict(spec)


def _check_minor(rule: Rule, minor: int | None) -> None:
    if minor is not None and minor < FIRST_MINOR and needs_label_keys(rule):
        field = "mismatchLabelKeys" if rule.name == "separate" else "matchLabelKeys"
        raise InputError(
            f"the API server is 1.{minor}, which drops {field} silently: the rule would not tell versions apart. "
            f"It takes 1.{FIRST_MINOR} or newer."
        )


def _edit_strategy(document: Document, edit: Edit) -> Document:
    if document.get("kind") != "Deployment":
        raise InputError(f"--max-surge, --max-unavailable: a {document.get('kind')} has no such strategy.")
    strategy: Any = document["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        raise InputError("--max-surge, --max-unavailable: its strategy is Recreate, which knows neither.")
    limits = dict(strategy.get("rollingUpdate") or {})
    limits |= {"maxSurge": edit.max_surge} if edit.max_surge is not None else {}
    limits |= {"maxUnavailable": edit.max_unavailable} if edit.max_unavailable is not None else {}
    return {**strategy, "type": "RollingUpdate", "rollingUpdate": limits}
