"""A rule that keeps the pods of a workload apart, and the term of podAntiAffinity that says so. Pure.

    apart      no two pods of the workload in one domain; per version: of one version
    separate   no pods of two versions of the workload in one domain

Used by edits.py. A term names the workload's own pods by the workload's own selector, unless another one is given.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wukong.api.meta import LabelSelector
from wukong.errors import InputError
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key
from wukong.semantics.selectors import compile_selector, selects

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
RuleName = Literal["apart", "separate"]
RULE_NAMES: tuple[RuleName, ...] = ("apart", "separate")
VERSION_LABELS = {"Deployment": "pod-template-hash", "StatefulSet": "controller-revision-hash"}
REVISION = "deployment.kubernetes.io/revision"  # an annotation that the Deployment controller keeps
FIRST_MINOR = 31  # of the API server: matchLabelKeys and mismatchLabelKeys are on from there on
HEAVIEST = 100


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. Without a `weight` it is required; without a `selector` the workload's own holds."""

    name: RuleName
    topology_key: str
    weight: int | None = None
    is_per_version: bool = False  # of `apart`
    selector: Document | None = None  # a LabelSelector


def build_term(rule: Rule, workload: Document) -> tuple[str, Document]:
    """The list of podAntiAffinity that the rule stands in, and its entry. Raises InputError with every problem."""
    problems = list(_find_problems(rule, workload))
    if problems:
        raise InputError(*problems)
    term: Document = {"labelSelector": _choose_selector(rule, workload), "topologyKey": rule.topology_key}
    version_label = VERSION_LABELS[workload["kind"]]
    if rule.name == "separate":
        term["mismatchLabelKeys"] = [version_label]
    elif rule.is_per_version:
        term["matchLabelKeys"] = [version_label]
    if rule.weight is None:
        return REQUIRED, term
    return PREFERRED, {"weight": rule.weight, "podAffinityTerm": term}


def needs_label_keys(rule: Rule) -> bool:
    """Whether the rule is written with matchLabelKeys or mismatchLabelKeys, which older API servers drop silently."""
    return rule.name == "separate" or rule.is_per_version


def _choose_selector(rule: Rule, workload: Document) -> Any:
    return rule.selector if rule.selector is not None else (workload.get("spec") or {}).get("selector")


def _find_problems(rule: Rule, workload: Document) -> list[str]:
    problems: list[str] = []
    kind = workload.get("kind")
    if kind not in VERSION_LABELS or (rule.name == "separate" and kind != "Deployment"):
        wanted = "a Deployment" if rule.name == "separate" else "a Deployment or a StatefulSet"
        return [f"expected {wanted}, got a {kind}."]
    if not is_label_key(rule.topology_key):
        problems.append(f'topology: expected hostname, zone or a label key of nodes, got "{rule.topology_key:.100}".')
    if rule.weight is not None and not 1 <= rule.weight <= HEAVIEST:
        problems.append(f"weight: expected 1 to {HEAVIEST}, got {rule.weight}.")
    return problems + _find_selector_problems(rule, workload)


def _find_selector_problems(rule: Rule, workload: Document) -> list[str]:
    """A rule whose selector is not about the workload's own pods would keep them apart from others, or from nobody."""
    value = _choose_selector(rule, workload)
    try:
        selector = compile_selector(msgspec.convert(value, LabelSelector))
        labels = msgspec.convert(read_template_labels(workload), dict[str, str])
    except (msgspec.ValidationError, TypeError):
        return ["selector: expected a label selector, and labels in spec.template.metadata.labels."]
    if not selector:
        return ["selector: expected at least one label, got none: it would select every pod of the namespace."]
    if not selects(selector, labels):
        found = ", ".join(f"{name}={text}" for name, text in sorted(labels.items())) or "no labels"
        return [f"selector: it does not select the workload's own pods, which have {found}."]
    return []


def read_template_labels(workload: Document) -> Any:
    template = (workload.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}
