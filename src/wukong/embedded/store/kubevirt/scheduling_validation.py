"""What virt-api refuses about the scheduling fields of a template, in its words. Called by admission.py; pure.

virt-api validates twice: by the OpenAPI schema, whose enums are all that matters here, and, if that has nothing to say,
by a copy of Kubernetes' own validation (pkg/virt-api/.../validate-k8s-utils.go, 1.7). The copy leaves `affinity` out of
its paths, and knows no tolerations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from wukong.ports import Document

_LABEL_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_FORM = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_FORM = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")
_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_INVALID_OPERATOR = "not a valid selector operator"


def find_enum_problems(spec: Document, path: str) -> Iterator[str]:
    """What the OpenAPI schema refuses: values that are none of an enum."""
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        place = f"{path}.tolerations.{index}"
        yield from _check_enum(toleration.get("operator"), ("Equal", "Exists"), f"{place}.operator")
        yield from _check_enum(toleration.get("effect"), _EFFECTS, f"{place}.effect")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = f"{path}.topologySpreadConstraints.{index}.whenUnsatisfiable"
        yield from _check_enum(constraint.get("whenUnsatisfiable"), _ACTIONS, place)
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    place = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate((node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _check_operators(term, f"{place}.{_REQUIRED}.nodeSelectorTerms.{index}")
    for index, preferred in enumerate(node_affinity.get(_PREFERRED) or ()):
        yield from _check_operators(preferred.get("preference") or {}, f"{place}.{_PREFERRED}.{index}.preference")


def _check_operators(term: Document, path: str) -> Iterator[str]:
    for field in ("matchExpressions", "matchFields"):
        for index, expression in enumerate(term.get(field) or ()):
            yield from _check_enum(expression.get("operator"), _OPERATORS, f"{path}.{field}.{index}.operator")


def _check_enum(value: Any, allowed: tuple[str, ...], path: str) -> Iterator[str]:
    if value is not None and value not in allowed:
        yield f"{path} in body should be one of [{' '.join(allowed)}]"


def find_scheduling_problems(spec: Document, path: str) -> Iterator[str]:
    """What the copy of Kubernetes' validation refuses of affinity and topology spread constraints."""
    affinity = spec.get("affinity") or {}
    if node_affinity := affinity.get("nodeAffinity"):
        yield from _find_node_affinity_problems(node_affinity, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        if terms := affinity.get(field):
            yield from _find_pod_affinity_problems(terms, f"{path}.{field}")
    constraints = spec.get("topologySpreadConstraints") or []
    place = f"{path}.topologySpreadConstraints"
    for index, constraint in enumerate(constraints):
        yield from _find_spread_problems(constraint, constraints[index + 1 :], place, f"{place}[{index}]")


def _find_node_affinity_problems(affinity: Document, path: str) -> Iterator[str]:
    if (required := affinity.get(_REQUIRED)) is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            yield _require(f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _find_node_term_problems(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _find_weight_problems(preferred, f"{path}.{_PREFERRED}[{index}]")
        preference = preferred.get("preference") or {}
        yield from _find_node_term_problems(preference, f"{path}.{_PREFERRED}[{index}].preference")


def _find_node_term_problems(term: Document, path: str) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        place, values = f"{path}.matchExpressions[{index}]", expression.get("values") or []
        if expression.get("operator") in ("Gt", "Lt"):
            if len(values) != 1:
                yield _require(f"{place}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        else:
            yield from _find_operator_problems(expression, place)
        yield from _find_name_problems(expression.get("key") or "", f"{place}.key")
    for index, field in enumerate(term.get("matchFields") or ()):
        place, operator = f"{path}.matchFields[{index}]", field.get("operator")
        if operator not in ("In", "NotIn"):
            yield _invalidate(f"{place}.operator", operator, _INVALID_OPERATOR)
        elif len(field.get("values") or ()) != 1:
            message = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield _require(f"{place}.values", message)
        if field.get("key") != "metadata.name":
            yield _invalidate(f"{place}.key", field.get("key") or "", "not a valid field selector key")


def _find_operator_problems(expression: Document, path: str) -> Iterator[str]:
    operator, values = expression.get("operator"), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield _require(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield f"{path}.values: Forbidden: {message}"
    else:
        yield _invalidate(f"{path}.operator", operator or "", _INVALID_OPERATOR)


def _find_pod_affinity_problems(affinity: Document, path: str) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _find_pod_term_problems(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _find_weight_problems(preferred, place)
        yield from _find_pod_term_problems(preferred.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def _find_pod_term_problems(term: Document, path: str) -> Iterator[str]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from find_selector_problems(term.get(field), f"{path}.{field}")
    key = term.get("topologyKey") or ""
    if not key:
        yield _require(f"{path}.topologyKey", "can not be empty")
    yield from _find_name_problems(key, f"{path}.topologyKey")


def _find_spread_problems(constraint: Document, others: list[Document], lists_path: str, path: str) -> Iterator[str]:
    if (constraint.get("maxSkew") or 0) <= 0:
        yield _invalidate(f"{path}.maxSkew", constraint.get("maxSkew") or 0, "must be greater than zero")
    key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
    if not key:
        yield _require(f"{path}.topologyKey", "can not be empty")
    else:
        yield from _find_name_problems(key, f"{path}.topologyKey")
    if action not in _ACTIONS:
        supported = ", ".join(map(json.dumps, _ACTIONS))
        yield f"{path}.whenUnsatisfiable: Unsupported value: {json.dumps(action)}: supported values: {supported}"
    yield from find_selector_problems(constraint.get("labelSelector"), f"{lists_path}.labelSelector")
    if any((other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action) for other in others):
        yield f'{path}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{{key}, {action}}}"'


def find_selector_problems(selector: Document | None, path: str) -> Iterator[str]:
    if selector is None:
        return
    labels: Mapping[str, str] = selector.get("matchLabels") or {}
    for key, value in labels.items():
        yield from _find_name_problems(key, f"{path}.matchLabels")
        yield from _find_value_problems(value, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        yield from _find_operator_problems(expression, place)
        yield from _find_name_problems(expression.get("key") or "", f"{place}.key")
        for number, value in enumerate(expression.get("values") or ()):
            yield from _find_value_problems(value, f"{place}.values[{number}]")


def _find_weight_problems(term: Document, path: str) -> Iterator[str]:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        yield _invalidate(f"{path}.weight", weight, "must be in the range 1-100")


def _find_name_problems(name: str, path: str) -> Iterator[str]:
    """Of a label key, as IsQualifiedName finds them: an empty name is wrong twice."""
    prefix, slash, rest = name.partition("/")
    part = rest if slash else name
    if slash and "/" in rest:
        message = "a valid label key " + _NAME_FORM.removeprefix("must ") + " with an optional DNS subdomain prefix"
        yield _invalidate(path, name, f"{message} and '/' (e.g. 'example.com/MyName')")
        return
    if slash and not prefix:
        yield _invalidate(path, name, "prefix part must be non-empty")
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        yield _invalidate(path, name, _PREFIX_FORM)
    if not part:
        yield _invalidate(path, name, "name part must be non-empty")
    elif len(part) > 63:
        yield _invalidate(path, name, "name part must be no more than 63 bytes")
    if not _LABEL_PART.fullmatch(part):
        yield _invalidate(path, name, f"name part {_NAME_FORM}")


def _find_value_problems(value: str, path: str) -> Iterator[str]:
    if len(value) > 63:
        yield _invalidate(path, value, "must be no more than 63 bytes")
    if value and not _LABEL_PART.fullmatch(value):
        yield _invalidate(path, value, _VALUE_FORM)


def _require(path: str, message: str) -> str:
    return f"{path}: Required value: {message}"


def _invalidate(path: str, value: Any, message: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value)}: {message}"
