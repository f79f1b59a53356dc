"""Affinity, spread constraints, tolerations and selectors. Called by spec.py and by the rules of workloads; pure."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.store.validation.pods.problems import (
    find_unsupported,
    forbidden,
    invalid,
    required,
    unsupported,
)
from wukong.embedded.store.validation.pods.syntax import find_key_problems, find_label_problems, is_name
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_value

REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MORE_OPERATORS = ("Gt", "Lt")  # of nodes alone


def find_affinity_problems(affinity: Document, path: str) -> Iterator[str]:
    if (node := affinity.get("nodeAffinity")) is not None:
        yield from _find_node_affinity_problems(node, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        here = f"{path}.{name}"
        for index, term in enumerate(terms.get(REQUIRED) or []):
            yield from _find_pod_term_problems(term, f"{here}.{REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(PREFERRED) or []):
            place = f"{here}.{PREFERRED}[{index}]"
            yield from _find_weight_problems(weighted, place)
            yield from _find_pod_term_problems(weighted["podAffinityTerm"], f"{place}.podAffinityTerm")


def _find_node_affinity_problems(affinity: Document, path: str) -> Iterator[str]:
    if (selector := affinity.get(REQUIRED)) is not None:
        here = f"{path}.{REQUIRED}.nodeSelectorTerms"
        terms = selector.get("nodeSelectorTerms") or []
        if not terms:
            yield required(here, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _find_node_term_problems(term, f"{here}[{index}]")
    for index, weighted in enumerate(affinity.get(PREFERRED) or []):
        here = f"{path}.{PREFERRED}[{index}]"
        yield from _find_weight_problems(weighted, here)
        yield from _find_node_term_problems(weighted["preference"], f"{here}.preference", is_preferred=True)


def _find_weight_problems(weighted: Document, path: str) -> Iterator[str]:
    if not 1 <= weighted["weight"] <= 100:
        yield invalid(f"{path}.weight", weighted["weight"], "must be in the range 1-100")


def _find_node_term_problems(term: Document, path: str, *, is_preferred: bool = False) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or []):
        here = f"{path}.matchExpressions[{index}]"
        yield from _find_expression_problems(expression, here, more=_MORE_OPERATORS)
        if not is_preferred and expression.get("operator") in ("In", "NotIn"):
            for number, value in enumerate(expression.get("values") or []):
                if not is_label_value(value):
                    yield invalid(f"{here}.values[{number}]", value, "a valid label must be empty or alphanumeric")
    for index, field in enumerate(term.get("matchFields") or []):
        here, operator, values = f"{path}.matchFields[{index}]", field.get("operator"), field.get("values") or []
        if operator not in ("In", "NotIn"):
            yield invalid(f"{here}.operator", operator, "not a valid selector operator")
        elif len(values) != 1:
            yield required(f"{here}.values", "must be only one value when `operator` is 'In' or 'NotIn'")
        if field.get("key") != "metadata.name":
            yield invalid(f"{here}.key", field.get("key"), "not a valid field selector key")


def _find_expression_problems(expression: Document, path: str, more: tuple[str, ...] = ()) -> Iterator[str]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in more:
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from find_key_problems(expression.get("key", ""), f"{path}.key")


def find_selector_problems(selector: Document | None, path: str) -> Iterator[str]:
    """Check a label selector."""
    if selector is None:
        return
    yield from find_label_problems(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        here = f"{path}.matchExpressions[{index}]"
        yield from _find_expression_problems(expression, here)
        for number, value in enumerate(expression.get("values") or []):
            if not is_label_value(value):
                yield invalid(f"{here}.values[{number}]", value, "a valid label must be empty or alphanumeric")


def _find_pod_term_problems(term: Document, path: str) -> Iterator[str]:
    yield from find_selector_problems(term.get("labelSelector"), f"{path}.labelSelector")
    yield from find_selector_problems(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces") or []:
        if not is_name(namespace):
            yield invalid(f"{path}.namespace", namespace, "a lowercase RFC 1123 label is needed")
    yield from _find_label_keys_problems(term, path)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from find_key_problems(key, f"{path}.topologyKey")


def _find_label_keys_problems(term: Document, path: str) -> Iterator[str]:
    """Check matchLabelKeys and mismatchLabelKeys: they add to a selector, which cannot have them already."""
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
        for index, key in enumerate(keys):
            yield from find_key_problems(key, f"{path}.{field}[{index}]")
    selected = {expression.get("key") for expression in (selector or {}).get("matchExpressions") or []}
    selected |= set((selector or {}).get("matchLabels") or {})
    for index, key in enumerate(match):
        if key in mismatch:
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        if key in selected:
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and labelSelector")


def find_spread_problems(constraints: list[Document], path: str) -> Iterator[str]:
    for index, constraint in enumerate(constraints):
        here, action = f"{path}[{index}]", constraint.get("whenUnsatisfiable", "")
        if constraint["maxSkew"] <= 0:
            yield invalid(f"{here}.maxSkew", constraint["maxSkew"], "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{here}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield unsupported(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        pair = (constraint.get("topologyKey"), action)
        if any(
            (later.get("topologyKey"), later.get("whenUnsatisfiable")) == pair for later in constraints[index + 1 :]
        ):
            yield f'{here}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{{pair[0]}, {pair[1]}}}"'
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                yield invalid(f"{here}.minDomains", domains, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
                yield invalid(f"{here}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from find_unsupported(constraint.get(field), ("Honor", "Ignore"), f"{here}.{field}")
        yield from _find_label_keys_problems(constraint, here)
        yield from find_selector_problems(constraint.get("labelSelector"), f"{here}.labelSelector")


def find_toleration_problems(tolerations: list[Document], path: str) -> Iterator[str]:
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        operator, key, value = (toleration.get(name, "") for name in ("operator", "key", "value"))
        effect = toleration.get("effect", "")
        if key:
            yield from find_key_problems(key, f"{here}.key")
        elif operator != "Exists":
            yield invalid(f"{here}.operator", operator, "operator must be Exists when `key` is empty")
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            yield invalid(f"{here}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if operator in ("", "Equal"):
            if not is_label_value(value):
                yield invalid(f"{here}.operator", value, "a valid label must be empty or alphanumeric")
        elif operator == "Exists":
            if value:
                yield invalid(f"{here}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield unsupported(f"{here}.operator", operator, ("Equal", "Exists"))
        if effect:
            yield from find_unsupported(effect, _EFFECTS, f"{here}.effect")
