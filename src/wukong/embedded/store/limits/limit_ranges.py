"""LimitRanges: what a pod's containers get where they ask for nothing, and which pods and claims are refused.

Follows kube-apiserver's admission plugin LimitRanger (1.35), message by message. Where a namespace has several, a real
server takes them in any order; here by name. Called by admission.py and writes.py; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from wukong.api.quantity import milli, units
from wukong.embedded.store.limits.amounts import Amount, Amounts, parse_amounts
from wukong.embedded.store.limits.pod_resources import list_containers, resources_of, sum_resources
from wukong.ports import Document

ANNOTATION = "kubernetes.io/limit-ranger"
_LARGEST_MILLI = (2**63 - 1) // 1000  # units above which thousandths do not fit into 64 bits


class DefaultedPod(NamedTuple):
    pod: Document
    annotation: str  # what was set, in words; "" if nothing was


def set_defaults(pod: Document, limit_ranges: Iterable[Document]) -> DefaultedPod:
    """The pod with the default requests and limits of its namespace."""
    annotation = ""
    for limit_range in limit_ranges:
        defaults = _find_container_defaults(limit_range)
        spec, changes = dict(pod["spec"]), list[str]()
        for field, title in (("containers", "container"), ("initContainers", "init container")):
            if spec.get(field):
                spec[field] = [_fill_container(container, defaults, title, changes) for container in spec[field]]
        if changes:
            pod, annotation = {**pod, "spec": spec}, f"LimitRanger plugin set: {'; '.join(changes)}"
    if annotation:
        meta = pod["metadata"]
        pod = {**pod, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), ANNOTATION: annotation}}}
    return DefaultedPod(pod, annotation)


def _find_container_defaults(limit_range: Document) -> dict[str, Document]:
    defaults: dict[str, Document] = {"requests": {}, "limits": {}}
    for item in _items_of(limit_range, "Container"):
        defaults["requests"] |= item.get("defaultRequest") or {}
        defaults["limits"] |= item.get("default") or {}
    return defaults


def _fill_container(container: Document, defaults: dict[str, Document], title: str, changes: list[str]) -> Document:
    resources = dict(container.get("resources") or {})
    for part in ("requests", "limits"):
        present = resources.get(part) or {}
        missing = {name: quantity for name, quantity in defaults[part].items() if name not in present}
        if missing:
            resources[part] = {**present, **missing}
            changes.append(f"{', '.join(sorted(missing))} {part.removesuffix('s')} for {title} {container['name']}")
    return {**container, "resources": resources}


def find_pod_refusals(pod: Document, limit_ranges: Iterable[Document]) -> Iterator[str]:
    """Why each LimitRange that does refuses the pod."""
    for limit_range in limit_ranges:
        problems: list[str] = []
        for item in (limit_range.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                for container in list_containers(pod):
                    requests, limits = resources_of(container, "requests"), resources_of(container, "limits")
                    problems += _find_problems(item, requests, limits)
            elif item.get("type") == "Pod":
                requests = sum_resources(pod, "requests", with_overhead=False)
                limits = sum_resources(pod, "limits", with_overhead=False)
                problems += _find_problems(item, requests, limits)
        if problems:
            yield _join_problems(problems)


def find_claim_refusals(claim: Document, limit_ranges: Iterable[Document]) -> Iterator[str]:
    """Why each LimitRange that does refuses a PersistentVolumeClaim."""
    requests = parse_amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    for limit_range in limit_ranges:
        problems: list[str] = []
        for item in _items_of(limit_range, "PersistentVolumeClaim"):
            for name, least in _sorted_amounts(item, "min"):
                problems += _find_min_problem(item["type"], name, least, requests, {})
            for name, most in _sorted_amounts(item, "max"):
                problems += _find_max_request_problem(item["type"], name, most, requests)
        if problems:
            yield _join_problems(problems)


def _items_of(limit_range: Document, type_: str) -> list[Document]:
    items = (limit_range.get("spec") or {}).get("limits") or ()
    return [item for item in items if item.get("type") == type_]


def _sorted_amounts(item: Document, field: str) -> list[tuple[str, Amount]]:
    return sorted(parse_amounts(item.get(field)).items())


def _join_problems(problems: list[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _find_problems(item: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in _sorted_amounts(item, "min"):
        yield from _find_min_problem(item["type"], name, least, requests, limits)
    for name, most in _sorted_amounts(item, "max"):
        yield from _find_max_problem(item["type"], name, most, requests, limits)
    for name, ratio in _sorted_amounts(item, "maxLimitRequestRatio"):
        yield from _find_ratio_problem(item["type"], name, ratio, requests, limits)


def _find_min_problem(
    type_: str, name: str, least: Amount, requests: Mapping[str, Amount], limits: Mapping[str, Amount]
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    bound = f"minimum {name} usage per {type_} is {least}"
    asked, limited, enforced = _in_common_unit(request, limit, least)
    if request is None:
        yield f"{bound}.  No request is specified"
    elif asked < enforced:
        yield f"{bound}, but request is {request}"
    elif limit is not None and limited < enforced:
        yield f"{bound}, but limit is {limit}"


def _find_max_problem(
    type_: str, name: str, most: Amount, requests: Mapping[str, Amount], limits: Mapping[str, Amount]
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    bound = f"maximum {name} usage per {type_} is {most}"
    asked, limited, enforced = _in_common_unit(request, limit, most)
    if limit is None:
        yield f"{bound}.  No limit is specified"
    elif limited > enforced:
        yield f"{bound}, but limit is {limit}"
    elif request is not None and asked > enforced:
        yield f"{bound}, but request is {request}"


def _find_max_request_problem(type_: str, name: str, most: Amount, requests: Mapping[str, Amount]) -> Iterator[str]:
    request = requests.get(name)
    bound = f"maximum {name} usage per {type_} is {most}"
    asked, _, enforced = _in_common_unit(request, None, most)
    if request is None:
        yield f"{bound}.  No request is specified"
    elif asked > enforced:
        yield f"{bound}, but request is {request}"


def _find_ratio_problem(
    type_: str, name: str, ratio: Amount, requests: Mapping[str, Amount], limits: Mapping[str, Amount]
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    bound = f"{name} max limit to request ratio per {type_} is {ratio}"
    asked, limited, _ = _in_common_unit(request, limit, ratio)
    if not asked:
        yield f"{bound}, but no request is specified or request is 0"
    elif not limited:
        yield f"{bound}, but no limit is specified or limit is 0"
    else:
        provided = limited / asked
        is_fine = units(ratio.nanos) <= _LARGEST_MILLI
        if (provided * 1000 > milli(ratio.nanos)) if is_fine else (provided > units(ratio.nanos)):
            yield f"{bound}, but provided ratio is {provided:f}"


def _in_common_unit(request: Amount | None, limit: Amount | None, enforced: Amount) -> tuple[int, int, int]:
    """In thousandths, rounded up; in units where those do not fit into 64 bits. What is not there counts as 0."""
    nanos = [amount.nanos if amount is not None else 0 for amount in (request, limit, enforced)]
    if all(units(number) <= _LARGEST_MILLI for number in nanos):
        asked, limited, bound = map(milli, nanos)
    else:
        asked, limited, bound = map(units, nanos)
    return asked, limited, bound
