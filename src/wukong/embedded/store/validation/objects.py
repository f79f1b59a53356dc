"""Validates objects before they are stored: names, labels and finalizers of all kinds, and the kinds we model.

Pods and pod templates are validated by pods/, workloads by workloads.py, custom kinds by custom_schemas and own_kinds.
Called by writes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from wukong.api.core import Pod
from wukong.api.decode import readable
from wukong.api.kinds import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    KINDS,
    LIMIT_RANGES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SECRETS,
    STATEFUL_SETS,
)
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Resource
from wukong.embedded.store.api_errors import bad_request, invalid
from wukong.embedded.store.documents import has_same_desired_state, is_terminating, meta_of
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.limits import pod_security
from wukong.embedded.store.limits.validation import find_limit_range_problems, find_quota_problems
from wukong.embedded.store.validation import custom_schemas, own_kinds
from wukong.embedded.store.validation.claims import find_claim_problems
from wukong.embedded.store.validation.pods.spec import find_pod_spec_problems
from wukong.embedded.store.validation.pods.syntax import find_label_problems
from wukong.embedded.store.validation.updates import find_forbidden_changes
from wukong.embedded.store.validation.workloads import find_amount_problems, find_workload_problems
from wukong.errors import Invalid
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key, is_subdomain

_WITH_POD_TEMPLATE = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, REPLICATION_CONTROLLERS, JOBS)
_LABEL_KEYS = ("matchLabelKeys", "mismatchLabelKeys")
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
HIGHEST_USER_PRIORITY = 1_000_000_000


def decode_object(resource: Resource, document: Document) -> Object:
    """Decode a document into the struct of its kind. Raises Invalid (400) where a field has the wrong type."""
    try:
        return msgspec.convert(document, KINDS[resource.group_kind].struct)
    except msgspec.ValidationError as error:
        _raise_problems_of(resource, document)
        kind, version = resource.kind, document.get("apiVersion", "v1")
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {readable(error)}'
        raise bad_request(message) from None


def _raise_problems_of(resource: Resource, document: Document) -> None:
    """Raise Invalid (422) where a pod cannot be read because a field has a value that no server supports."""
    if resource == PODS and (problems := list(find_pod_spec_problems(document.get("spec") or {}, "spec"))):
        raise invalid(resource.group_kind, meta_of(document).get("name", ""), problems)


def has_struct(kind: ServedKind) -> bool:
    """Whether a struct checks the types of its fields, as the API server checks those of its own kinds."""
    entry = KINDS.of_resource(kind.resource)
    return entry is not None and (entry.decides or entry.has_strict_types) and entry.origin != "foreign"


def decode_pod(document: Document) -> Pod:
    pod = decode_object(PODS, document)
    assert isinstance(pod, Pod)
    return pod


@contextmanager
def refuse_wrong_types(kind: ServedKind) -> Iterator[None]:
    """Turn type errors of the code within into Invalid (400): fields that our structs do not read may have any type."""
    try:
        yield
    except _TYPE_ERRORS as error:
        raise _refuse_type(kind, error) from None


_TYPE_ERRORS = (AttributeError, TypeError, ValueError, LookupError, RecursionError)


def _refuse_type(kind: ServedKind, error: Exception) -> Invalid:
    return bad_request(f"{kind.resource.kind} cannot be read: {error}")


def check_types(kind: ServedKind, document: Document) -> None:
    """Raise Invalid (400) where a field has another type than Kubernetes gives it."""
    name, meta = kind.resource.kind, meta_of(document)
    if has_struct(kind):
        decode_object(kind.resource, document)
    else:
        try:
            msgspec.convert(meta, ObjectMeta)
        except msgspec.ValidationError as error:
            raise bad_request(f"{name} cannot be handled as a {name}: metadata: {readable(error)}") from None
        if not kind.is_custom and not _has_usual_parts(document):
            raise bad_request(f"{name} cannot be handled as a {name}: its spec, status or conditions are none")
    texts = {"metadata.labels": meta.get("labels"), "metadata.annotations": meta.get("annotations")}
    if kind.resource in (CONFIG_MAPS, SECRETS):
        texts["data"] = document.get("data")
    for place, entries in texts.items():
        if entries and not (isinstance(entries, dict) and all(isinstance(text, str) for text in entries.values())):
            raise bad_request(f'{name} in version "v1" cannot be handled as a {name}: {place} is no map of texts')


def _has_usual_parts(document: Document) -> bool:
    """Whether spec, status and its conditions, where there are any, are objects and a list of objects."""
    if not all(isinstance(document.get(part) or {}, dict) for part in ("spec", "status")):
        return False
    conditions = (document.get("status") or {}).get("conditions") or []
    return isinstance(conditions, list) and all(isinstance(condition, dict) for condition in conditions)


def check_new(kind: ServedKind, document: Document) -> None:
    """Raise Invalid with every problem of a new object. A pod is checked before its label keys are merged."""
    with refuse_wrong_types(kind):
        problems = [*_find_metadata_problems(kind, document), *_find_kind_problems(kind, document)]
    _raise_problems(kind, document, problems)


def check_new_metadata(kind: ServedKind, document: Document) -> None:
    """Do the same for a new object of which all but the metadata is known to be valid."""
    try:
        problems = list(_find_metadata_problems(kind, document))
    except _TYPE_ERRORS as error:
        raise _refuse_type(kind, error) from None
    _raise_problems(kind, document, problems)


def check_update(kind: ServedKind, before: Document, after: Document, *, is_known: bool) -> None:
    """Raise Invalid with every problem of a changed object.

    `is_known`: the stored object was validated before, so that what did not change is not checked again.
    """
    try:  # every write comes by, so without a context manager
        has_same_labels = is_known and _has_same_labels_and_owners(before, after)
        problems = [] if has_same_labels else list(_find_metadata_problems(kind, after))
        if not has_same_labels:
            problems += _find_finalizer_problems(before, after)
        if kind.is_custom or not has_same_labels or not has_same_desired_state(before, after):
            problems += _find_update_problems(kind, before, after, is_known=is_known)
        if kind.is_custom:
            problems += own_kinds.find_change_problems(kind, before, after)
        else:
            problems += find_forbidden_changes(kind.resource.kind, before, after)
    except _TYPE_ERRORS as error:
        raise _refuse_type(kind, error) from None
    _raise_problems(kind, after, problems)


def _has_same_labels_and_owners(before: Document, after: Document) -> bool:
    old, new = meta_of(before), meta_of(after)
    return old is new or all(old.get(name) == new.get(name) for name in ("labels", "finalizers", "ownerReferences"))


def _find_update_problems(kind: ServedKind, before: Document, after: Document, *, is_known: bool) -> list[str]:
    if kind.resource == PODS:
        return _find_pod_update_problems(before, after)
    return _find_kind_problems(kind, after, before if is_known else {})


def _raise_problems(kind: ServedKind, document: Document, problems: list[str]) -> None:
    if problems:
        raise invalid(kind.title, meta_of(document).get("name", ""), problems)


# Metadata --------------------------------------------------------------------------------------------------------


def _find_metadata_problems(kind: ServedKind, document: Document) -> Iterator[str]:
    meta = meta_of(document)
    name = meta.get("name", "")
    if kind.resource == NAMESPACES and not (_LABEL.fullmatch(name) and len(name) <= 63):
        yield f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 label is needed'
    elif not is_subdomain(name):
        yield f'metadata.name: Invalid value: "{name}": {_SUBDOMAIN}'
    yield from find_label_problems(meta.get("labels"), "metadata.labels")
    for finalizer in meta.get("finalizers") or []:
        if not is_label_key(finalizer) or ("/" not in finalizer and finalizer not in _STANDARD_FINALIZERS):
            reason = "name is neither a standard finalizer name nor is it fully qualified"
            yield f'metadata.finalizers: Invalid value: "{finalizer}": {reason}'
    for index, owner in enumerate(meta.get("ownerReferences") or []):
        for field in _OWNER_FIELDS:
            if not owner.get(field):
                yield f'metadata.ownerReferences[{index}].{field}: Invalid value: "": must not be empty'
    if len([owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")]) > 1:
        yield "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true"


def _find_finalizer_problems(before: Document, after: Document) -> Iterator[str]:
    added = set(meta_of(after).get("finalizers") or []) - set(meta_of(before).get("finalizers") or [])
    if added and is_terminating(before):
        reason = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
        yield f"metadata.finalizers: Forbidden: {reason}"


# Kind by kind ------------------------------------------------------------------------------------------------------


def _find_kind_problems(kind: ServedKind, document: Document, known: Document | None = None) -> list[str]:
    if kind.schema is not None:
        problems = custom_schemas.find_schema_problems(document, kind.schema)
        # As on a real server, what was stored and did not change is not judged again.
        is_changed = known is None or document.get("spec") != known.get("spec")
        has_rules = is_changed and own_kinds.is_ours(kind)
        return problems or (own_kinds.find_rule_problems(kind, document) if has_rules else [])
    resource = kind.resource
    if resource == PODS:
        return list(find_pod_spec_problems(document.get("spec") or {}, "spec"))
    if resource in _WITH_POD_TEMPLATE:
        return list(find_workload_problems(resource.kind, document, known or {}))
    if resource == PERSISTENT_VOLUME_CLAIMS:
        return list(find_claim_problems(document.get("spec") or {}, "spec"))
    if resource == POD_DISRUPTION_BUDGETS:
        return list(_find_budget_problems(document))
    if resource == PRIORITY_CLASSES:
        return list(_find_priority_problems(document))
    if resource == RESOURCE_QUOTAS:
        return list(find_quota_problems(document))
    if resource == LIMIT_RANGES:
        return list(find_limit_range_problems(document))
    if resource == NAMESPACES:
        return list(pod_security.find_label_problems(document))
    if resource in (CONFIG_MAPS, SECRETS):
        return list(_find_data_problems(document))
    return []


def _find_pod_update_problems(before: Document, after: Document) -> list[str]:
    """Check all but the label keys that were there before: the selectors hold them by now."""
    old, spec = before.get("spec") or {}, dict(after.get("spec") or {})
    for field in ("affinity", "topologySpreadConstraints"):
        if field in spec and spec[field] == old.get(field):
            spec[field] = _without_label_keys(spec[field])
    return list(find_pod_spec_problems(spec, "spec"))


def _without_label_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_label_keys(entry) for name, entry in value.items() if name not in _LABEL_KEYS}
    return [_without_label_keys(entry) for entry in value] if isinstance(value, list) else value


def _find_budget_problems(document: Document) -> Iterator[str]:
    spec = document.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield "spec: Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from find_amount_problems(spec.get(name), f"spec.{name}", is_share=True)


def _find_priority_problems(document: Document) -> Iterator[str]:
    name, value = meta_of(document).get("name", ""), document.get("value", 0)
    if name.startswith("system-"):
        if name not in ("system-node-critical", "system-cluster-critical"):
            yield "metadata.name: Forbidden: names with 'system-' prefix are reserved for system use only"
    elif value > HIGHEST_USER_PRIORITY:
        yield f"value: Forbidden: maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"


def _find_data_problems(document: Document) -> Iterator[str]:
    for key in document.get("data") or {}:
        if not _DATA_KEY.fullmatch(key):
            yield f'data[{key}]: Invalid value: "{key}": a valid config key must consist of alphanumeric characters'
