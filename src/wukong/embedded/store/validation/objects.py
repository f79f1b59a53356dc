"""What the API server refuses to store: names, labels and finalizers of all kinds, and the rules of those we model.

Pods and pod templates by rules.validate, so the wording of their problems is ours; custom kinds by custom_schemas and
placement_policies. Called by writing.py. Fields we do not model may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from wukong.admission import find_pod_problems
from wukong.admission.affinity_validation import find_label_problems, find_selector_problems
from wukong.admission.problem_text import format_value
from wukong.api.core import Pod
from wukong.api.decode import readable
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.embedded.store.api_errors import bad_request, invalid
from wukong.embedded.store.documents import at, is_leaving, meta_of, without
from wukong.embedded.store.kinds import Kind
from wukong.embedded.store.validation import custom_schemas, placement_policies
from wukong.embedded.store.validation.pod_specs import pod_spec_problems
from wukong.embedded.store.validation.updates import changes_refused
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key, is_subdomain
from wukong.semantics.selectors import compile_selector, selects

_TEMPLATED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
HIGHEST_USER_PRIORITY = 1_000_000_000


def as_struct(kind: str, document: Document) -> Object:
    """The document as the struct of its kind; refused as unreadable where a type is wrong."""
    try:
        return msgspec.convert(document, KINDS[kind])
    except msgspec.ValidationError as error:
        version = document.get("apiVersion", "v1")
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {readable(error)}'
        raise bad_request(message) from None


def as_pod(document: Document) -> Pod:
    pod = as_struct("Pod", document)
    assert isinstance(pod, Pod)
    return pod


@contextmanager
def reading(kind: Kind) -> Iterator[None]:
    """Around code that trusts a document's types: a field that none of our structs reads may still have another one."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        raise bad_request(f"{kind.resource.kind} cannot be read: {error}") from None


def check_types(kind: Kind, document: Document) -> None:
    """Raises Invalid (400) where the document cannot be read: a field has another type than Kubernetes gives it."""
    name, meta = kind.resource.kind, meta_of(document)
    if name in KINDS:
        as_struct(name, document)
    texts = {"metadata.labels": meta.get("labels"), "metadata.annotations": meta.get("annotations")}
    if name in ("ConfigMap", "Secret"):
        texts["data"] = document.get("data")
    for place, entries in texts.items():
        if entries and not (isinstance(entries, dict) and all(isinstance(each, str) for each in entries.values())):
            raise bad_request(f'{name} in version "v1" cannot be handled as a {name}: {place} is no map of texts')


def check_new(kind: Kind, document: Document) -> None:
    """Raises Invalid with every problem. A pod comes here before its label keys are merged."""
    with reading(kind):
        found = [*_meta_problems(kind, document), *_own_problems(kind, document)]
    _refuse(kind, document, found)


def check_new_meta(kind: Kind, document: Document) -> None:
    """The same for a document of which all but its metadata is known to be fine."""
    with reading(kind):
        found = list(_meta_problems(kind, document))
    _refuse(kind, document, found)


def check_changed(kind: Kind, before: Document, after: Document, *, is_known: bool) -> None:
    """`is_known`: what is stored was checked once, so that what did not change need not be looked at again."""
    with reading(kind):
        is_labelled_alike = is_known and _is_labelled_alike(before, after)
        found = [] if is_labelled_alike else list(_meta_problems(kind, after))
        found += _finalizer_changes(before, after)
        if kind.is_custom or not is_labelled_alike or not wants_the_same(before, after):
            found += _changed_problems(kind, before if is_known else {}, after)
        found += changes_refused(kind.resource.kind, before, after)
    _refuse(kind, after, found)


def wants_the_same(before: Document, after: Document) -> bool:
    """Whether two documents share all but metadata and status."""
    if not before.keys() <= after.keys():
        return False
    return all(before.get(name) is value for name, value in after.items() if name not in ("metadata", "status"))


def _is_labelled_alike(before: Document, after: Document) -> bool:
    old, new = meta_of(before), meta_of(after)
    return all(old.get(name) == new.get(name) for name in ("labels", "finalizers", "ownerReferences"))


def _changed_problems(kind: Kind, known: Document, after: Document) -> list[str]:
    if kind.resource.kind == "Pod":
        return _changed_pod_problems(after)
    return _own_problems(kind, after, known)


def _refuse(kind: Kind, document: Document, problems: list[str]) -> None:
    if problems:
        raise invalid(kind.title, meta_of(document).get("name", ""), problems)


# Metadata --------------------------------------------------------------------------------------------------------


def _meta_problems(kind: Kind, document: Document) -> Iterator[str]:
    meta = meta_of(document)
    name = meta.get("name", "")
    if kind.resource.kind == "Namespace" and not (_LABEL.fullmatch(name) and len(name) <= 63):
        yield f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 label is needed'
    elif not is_subdomain(name):
        yield f'metadata.name: Invalid value: "{name}": {_SUBDOMAIN}'
    yield from (_worded(each) for each in find_label_problems(meta.get("labels") or {}, "$.metadata.labels"))
    for finalizer in meta.get("finalizers") or []:
        if not is_label_key(finalizer) or ("/" not in finalizer and finalizer not in _STANDARD_FINALIZERS):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield f'metadata.finalizers: Invalid value: "{finalizer}": {why}'
    for index, owner in enumerate(meta.get("ownerReferences") or []):
        for field in _OWNER_FIELDS:
            if not owner.get(field):
                yield f'metadata.ownerReferences[{index}].{field}: Invalid value: "": must not be empty'
    if len([owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")]) > 1:
        yield "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true"


def _finalizer_changes(before: Document, after: Document) -> Iterator[str]:
    added = set(meta_of(after).get("finalizers") or []) - set(meta_of(before).get("finalizers") or [])
    if added and is_leaving(before):
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
        yield f"metadata.finalizers: Forbidden: {why}"


# Kind by kind ----------------------------------------------------------------------------------------------------


def _own_problems(kind: Kind, document: Document, known: Document | None = None) -> list[str]:
    if kind.schema is not None:
        found = custom_schemas.problems(document, kind.schema)
        return found or (placement_policies.refused(kind, document) if placement_policies.is_ours(kind) else [])
    name = kind.resource.kind
    struct = as_struct(name, document) if name in KINDS else None
    if isinstance(struct, Pod):
        spec = document.get("spec") or {}
        return [*pod_spec_problems(spec, "spec"), *(_worded(each) for each in find_pod_problems(struct))]
    if name in _TEMPLATED:
        return list(_workload_problems(name, document, known or {}))
    if name == "PodDisruptionBudget":
        return list(_budget_problems(document))
    if name == "PriorityClass":
        return list(_priority_problems(document))
    if name in ("ConfigMap", "Secret"):
        return list(_data_problems(document))
    return []


def _changed_pod_problems(document: Document) -> list[str]:
    """Without its affinity and spread: they cannot change, and their selectors hold merged keys by now."""
    spec = document.get("spec") or {}
    changeable = {**document, "spec": without(spec, "affinity", "topologySpreadConstraints")}
    found = find_pod_problems(as_pod(changeable))
    return [*pod_spec_problems(spec, "spec"), *(_worded(each) for each in found)]


def _workload_problems(kind: str, document: Document, known: Document) -> Iterator[str]:
    spec, workload = document.get("spec") or {}, as_struct(kind, document)
    template, selector = spec.get("template") or {}, workload.spec.selector  # type: ignore[attr-defined]
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        if spec.get(field, 0) < 0 and (kind, field) != ("DaemonSet", "replicas"):
            yield f"spec.{field}: Invalid value: {spec[field]}: must be greater than or equal to 0"
    if not spec.get("selector"):
        yield "spec.selector: Required value"
    else:
        yield from (_worded(each) for each in find_selector_problems(selector, "$.spec.selector"))
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not selects(compile_selector(selector), labels):
            why = "`selector` does not match template `labels`"
            yield f"spec.template.metadata.labels: Invalid value: {format_value(labels)}: {why}"
    if template is not at(known, "spec.template"):
        yield from _template_problems(template)
    yield from _strategy_problems(document)


def _template_problems(template: Document) -> Iterator[str]:
    head = {"apiVersion": "v1", "kind": "Pod"}
    pod = as_pod({**head, "metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}})
    yield from pod_spec_problems(template.get("spec") or {}, "spec.template.spec")
    yield from (_worded(f"$.spec.template{each.removeprefix('$')}") for each in find_pod_problems(pod))
    if at(template, "spec.restartPolicy") not in (None, "Always"):
        yield 'spec.template.spec.restartPolicy: Unsupported value: supported values: "Always"'


def _strategy_problems(document: Document) -> Iterator[str]:
    """Of a Deployment's strategy."""
    type_ = at(document, "spec.strategy.type")
    if type_ not in (None, "Recreate", "RollingUpdate"):
        known = '"Recreate", "RollingUpdate"'
        yield f'spec.strategy.type: Unsupported value: "{type_}": supported values: {known}'
    if type_ == "Recreate" and at(document, "spec.strategy.rollingUpdate") is not None:
        yield "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"
    rolling = at(document, "spec.strategy.rollingUpdate") or {}
    for name, value in rolling.items():
        yield from _amount_problems(value, f"spec.strategy.rollingUpdate.{name}")
    if [rolling.get(name) in (0, "0%") for name in ("maxSurge", "maxUnavailable")] == [True, True]:
        why = "may not be 0 when `maxSurge` is 0"
        yield f"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: {rolling['maxUnavailable']}: {why}"


def _budget_problems(document: Document) -> Iterator[str]:
    spec = document.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield "spec: Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from _amount_problems(spec.get(name), f"spec.{name}")


def _amount_problems(value: int | str | None, path: str) -> Iterator[str]:
    """Of a number or percentage of pods."""
    if isinstance(value, int) and value < 0:
        yield f"{path}: Invalid value: {value}: must be greater than or equal to 0"
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        yield f'{path}: Invalid value: "{value}": a valid percent string must be a numeric string followed by a %'
    elif isinstance(value, str) and int(value[:-1]) > 100 and not path.endswith("maxSurge"):
        yield f'{path}: Invalid value: "{value}": must not be greater than 100%'


def _priority_problems(document: Document) -> Iterator[str]:
    name, value = meta_of(document).get("name", ""), document.get("value", 0)
    if name.startswith("system-"):
        if name not in ("system-node-critical", "system-cluster-critical"):
            yield "metadata.name: Forbidden: names with 'system-' prefix are reserved for system use only"
    elif value > HIGHEST_USER_PRIORITY:
        yield f"value: Forbidden: maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"


def _data_problems(document: Document) -> Iterator[str]:
    for key in document.get("data") or {}:
        if not _DATA_KEY.fullmatch(key):
            yield f'data[{key}]: Invalid value: "{key}": a valid config key must consist of alphanumeric characters'


def _worded(problem: str) -> str:
    """Our `$.spec.x: expected …` the way the API server names places."""
    path, _, rest = problem.partition(": ")
    return f"{path.removeprefix('$.')}: Invalid value: {rest}"
