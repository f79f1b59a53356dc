"""What the API server refuses in a LimitRange, a ResourceQuota, and the pod security labels of a Namespace. Pure.

Called by store/validation/objects.py. The words are those of a real server (1.35).
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.store.limits.amounts import Amounts, parse_amounts
from wukong.embedded.store.limits.usage import is_pod_compute
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key
from wukong.semantics.requests import is_extended, is_huge_pages

_QUOTA_RESOURCES = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
    "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports",
    "services.loadbalancers",
})  # fmt: skip
_WHOLE_NUMBERS = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_CLAIM_SCOPE = "VolumeAttributesClass"
_POD_SCOPES = (
    *("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"),
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def find_quota_problems(quota: Document) -> Iterator[str]:
    spec = quota.get("spec") or {}
    for name, amount in sorted(parse_amounts(spec.get("hard")).items()):
        place = f"spec.hard[{name}]"
        yield from _find_name_problems(name, place)
        if amount.nanos < 0:
            yield f'{place}: Invalid value: "{amount}": must be greater than or equal to 0'
        if (name in _WHOLE_NUMBERS or is_extended(name)) and amount.nanos % 10**9:
            yield f'{place}: Invalid value: "{amount}": must be an integer'
    scopes = spec.get("scopes") or []
    if scopes:
        shown = "[" + ",".join(f'"{scope}"' for scope in scopes) + "]"
        for scope in scopes:
            if scope not in (*_POD_SCOPES, _CLAIM_SCOPE):
                yield f"spec.scopes: Invalid value: {shown}: unsupported scope"
            for _ in _list_unscopable(scope, spec):
                yield f"spec.scopes: Invalid value: {shown}: unsupported scope applied to resource"
        if any(pair <= set(scopes) for pair in _CONFLICTS):
            yield f"spec.scopes: Invalid value: {shown}: conflicting scopes"
    yield from _find_selector_problems(spec)


def _find_selector_problems(spec: Document) -> Iterator[str]:
    place = "spec.scopeSelector.matchExpressions"
    for entry in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        scope, operator, values = entry.get("scopeName", ""), entry.get("operator", ""), entry.get("values") or []
        if scope not in (*_POD_SCOPES, _CLAIM_SCOPE):
            yield f'{place}.scopeName: Invalid value: "{scope}": unsupported scope'
        if scope in _POD_SCOPES and scope != "PriorityClass" and operator != "Exists":
            yield f'{place}.operator: Invalid value: "{operator}": {_ONLY_EXISTS}'
        if operator in ("In", "NotIn"):
            if not values:
                reason = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield f"{place}.values: Required value: {reason}"
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                shown = "[" + ",".join(f'"{value}"' for value in values) + "]"
                reason = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield f"{place}.values: Invalid value: {shown}: {reason}"
        else:
            yield f'{place}.operator: Invalid value: "{operator}": not a valid selector operator'


def _find_name_problems(name: str, place: str) -> Iterator[str]:
    if "/" in name:
        if not is_label_key(name):
            yield f'{place}: Invalid value: "{name}": name part must consist of alphanumeric characters'
    elif name not in _QUOTA_RESOURCES and not is_huge_pages(name.removeprefix("requests.")):
        yield f'{place}: Invalid value: "{name}": must be a standard resource type or fully qualified'
        yield f'{place}: Invalid value: "{name}": must be a standard resource for quota'


def _list_unscopable(scope: str, spec: Document) -> list[str]:
    """The resources of a quota that this scope is not about."""
    names = [name for name in spec.get("hard") or () if name in _QUOTA_RESOURCES]
    if scope == _CLAIM_SCOPE:
        return [name for name in names if name not in ("persistentvolumeclaims", "requests.storage")]
    if scope == "BestEffort":
        return [name for name in names if name != "pods"]
    return [name for name in names if scope in _POD_SCOPES and name != "pods" and not is_pod_compute(name)]


def find_scope_changes(before: Document, after: Document) -> Iterator[str]:
    """The scopes of a quota cannot change."""
    old, new = ((document.get("spec") or {}).get("scopes") or [] for document in (before, after))
    if set(old) != set(new):
        shown = "[" + ",".join(f'"{scope}"' for scope in new) + "]" if new else "null"
        yield f"spec.scopes: Invalid value: {shown}: field is immutable"


def find_limit_range_problems(limit_range: Document) -> Iterator[str]:
    types: set[str] = set()
    for index, item in enumerate((limit_range.get("spec") or {}).get("limits") or ()):
        place, type_ = f"spec.limits[{index}]", item.get("type", "")
        if type_ not in _LIMIT_TYPES and "/" not in type_:
            yield f'{place}.type: Invalid value: "{type_}": must be a standard limit type or fully qualified'
        if type_ in types:
            yield f'{place}.type: Duplicate value: "{type_}"'
        types.add(type_)
        yield from _find_item_problems(item, type_, place)


def _find_item_problems(item: Document, type_: str, place: str) -> Iterator[str]:
    parts = {name: parse_amounts(item.get(name)) for name in ("max", "min", "default", "defaultRequest")}
    if type_ == "Pod":
        for name in ("default", "defaultRequest"):
            if parts[name]:
                yield f"{place}.{name}: Forbidden: may not be specified when `type` is 'Pod'"
        parts |= {"default": {}, "defaultRequest": {}}
    if type_ == "PersistentVolumeClaim" and not {"storage"} & {*parts["min"], *parts["max"]}:
        reason = "either minimum or maximum storage value is required, but neither was provided"
        yield f"{place}.limits: Required value: {reason}"
    ratios = parse_amounts(item.get("maxLimitRequestRatio"))
    for name in sorted({*ratios, *(name for amounts in parts.values() for name in amounts)}):
        yield from _find_order_problems(name, parts, place)
        ratio, least, most = ratios.get(name), parts["min"].get(name), parts["max"].get(name)
        if ratio is not None and ratio.nanos < 10**9:
            yield f'{place}.maxLimitRequestRatio[{name}]: Invalid value: "{ratio}": ratio {ratio} is less than 1'
        if ratio is not None and least is not None and most is not None and least.nanos:
            bound = most.nanos / least.nanos
            if ratio.nanos / 10**9 > bound:
                reason = f"ratio {ratio} is greater than max/min = {bound:f}"
                yield f'{place}.maxLimitRequestRatio[{name}]: Invalid value: "{ratio}": {reason}'


def _find_order_problems(name: str, parts: dict[str, Amounts], place: str) -> Iterator[str]:
    least, most = parts["min"].get(name), parts["max"].get(name)
    limit, request = parts["default"].get(name), parts["defaultRequest"].get(name)
    for low, high, field, shown, text in (
        (least, most, "min", least, "min value {} is greater than max value {}"),
        (least, request, "defaultRequest", request, "min value {} is greater than default request value {}"),
        (request, most, "defaultRequest", request, "default request value {} is greater than max value {}"),
        (request, limit, "defaultRequest", request, "default request value {} is greater than default limit value {}"),
        (least, limit, "default", least, "min value {} is greater than default value {}"),
        (limit, most, "default", most, "default value {} is greater than max value {}"),
    ):
        if low is not None and high is not None and low.nanos > high.nanos:
            yield f'{place}.{field}[{name}]: Invalid value: "{shown}": {text.format(low, high)}'
    can_exceed = name in _CONTAINER_RESOURCES or name == "storage"
    if not can_exceed and limit is not None and request is not None and limit.nanos != request.nanos:
        reason = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield f'{place}.defaultRequest[{name}]: Invalid value: "{request}": {reason}'
