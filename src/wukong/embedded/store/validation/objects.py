"""Validates objects before they are stored: names, labels and finalizers of all kinds, and the kinds we model.

Pods and pod templates are validated by rules.validate, so the wording of their problems is ours; custom kinds by
custom_schemas and own_kinds. Called by writes.py. Fields we do not model may hold anything.
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
from wukong.api.kinds import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    KINDS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SECRETS,
    STATEFUL_SETS,
)
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Resource
from wukong.embedded.store.api_errors import bad_request, invalid
from wukong.embedded.store.documents import has_same_desired_state, is_terminating, meta_of, value_at, without_fields
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.validation import custom_schemas, own_kinds
from wukong.embedded.store.validation.pod_specs import find_pod_spec_problems
from wukong.embedded.store.validation.updates import find_forbidden_changes
from wukong.ports import Document
from wukong.semantics.label_syntax import is_label_key, is_subdomain
from wukong.semantics.selectors import compile_selector, selects

_WITH_POD_TEMPLATE = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS)
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
        kind, version = resource.kind, document.get("apiVersion", "v1")
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {readable(error)}'
        raise bad_request(message) from None


def has_struct(kind: ServedKind) -> bool:
    """Whether a struct checks the types of its fields, as the API server checks those of its own kinds."""
    entry = KINDS.of_resource(kind.resource)
    return entry is not None and entry.decides and entry.origin != "foreign"


def decode_pod(document: Document) -> Pod:
    pod = decode_object(PODS, document)
    assert isinstance(pod, Pod)
    return pod


@contextmanager
def refuse_wrong_types(kind: ServedKind) -> Iterator[None]:
    """Turn type errors of the code within into Invalid (400): fields that our structs do not read may have any type."""
    try:
        yield
    except (AttributeError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise bad_request(f"{kind.resource.kind} cannot be read: {error}") from None


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
    with refuse_wrong_types(kind):
        problems = list(_find_metadata_problems(kind, document))
    _raise_problems(kind, document, problems)


def check_update(kind: ServedKind, before: Document, after: Document, *, is_known: bool) -> None:
    """Raise Invalid with every problem of a changed object.

    `is_known`: the stored object was validated before, so that what did not change is not checked again.
    """
    with refuse_wrong_types(kind):
        has_same_labels = is_known and _has_same_labels_and_owners(before, after)
        problems = [] if has_same_labels else list(_find_metadata_problems(kind, after))
        if not has_same_labels:
            problems += _find_finalizer_problems(before, after)
        if kind.is_custom or not has_same_labels or not has_same_desired_state(before, after):
            problems += _find_update_problems(kind, before if is_known else {}, after)
        if kind.is_custom:
            problems += own_kinds.find_change_problems(kind, before, after)
        else:
            problems += find_forbidden_changes(kind.resource.kind, before, after)
    _raise_problems(kind, after, problems)


def _has_same_labels_and_owners(before: Document, after: Document) -> bool:
    old, new = meta_of(before), meta_of(after)
    return old is new or all(old.get(name) == new.get(name) for name in ("labels", "finalizers", "ownerReferences"))


def _find_update_problems(kind: ServedKind, known: Document, after: Document) -> list[str]:
    if kind.resource == PODS:
        return _find_pod_update_problems(after)
    return _find_kind_problems(kind, after, known)


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
    yield from (
        _format_problem(problem) for problem in find_label_problems(meta.get("labels") or {}, "$.metadata.labels")
    )
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
        return problems or (own_kinds.find_rule_problems(kind, document) if own_kinds.is_ours(kind) else [])
    resource = kind.resource
    struct = decode_object(kind.resource, document) if has_struct(kind) else None
    if isinstance(struct, Pod):
        spec = document.get("spec") or {}
        return [
            *find_pod_spec_problems(spec, "spec"),
            *(_format_problem(problem) for problem in find_pod_problems(struct)),
        ]
    if resource in _WITH_POD_TEMPLATE:
        return list(_find_workload_problems(kind.resource, document, known or {}))
    if resource == POD_DISRUPTION_BUDGETS:
        return list(_find_budget_problems(document))
    if resource == PRIORITY_CLASSES:
        return list(_find_priority_problems(document))
    if resource in (CONFIG_MAPS, SECRETS):
        return list(_find_data_problems(document))
    return []


def _find_pod_update_problems(document: Document) -> list[str]:
    """Check all but affinity and spread: they cannot change, and their selectors hold merged keys by now."""
    spec = document.get("spec") or {}
    changeable = {**document, "spec": without_fields(spec, "affinity", "topologySpreadConstraints")}
    problems = find_pod_problems(decode_pod(changeable))
    return [*find_pod_spec_problems(spec, "spec"), *(_format_problem(problem) for problem in problems)]


def _find_workload_problems(resource: Resource, document: Document, known: Document) -> Iterator[str]:
    kind, spec, workload = resource.kind, document.get("spec") or {}, decode_object(resource, document)
    template, selector = spec.get("template") or {}, workload.spec.selector  # type: ignore[attr-defined]
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        if spec.get(field, 0) < 0 and (kind, field) != ("DaemonSet", "replicas"):
            yield f"spec.{field}: Invalid value: {spec[field]}: must be greater than or equal to 0"
    if not spec.get("selector"):
        yield "spec.selector: Required value"
    else:
        yield from (_format_problem(problem) for problem in find_selector_problems(selector, "$.spec.selector"))
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not selects(compile_selector(selector), labels):
            reason = "`selector` does not match template `labels`"
            yield f"spec.template.metadata.labels: Invalid value: {format_value(labels)}: {reason}"
    if template is not value_at(known, "spec.template"):
        yield from _find_template_problems(template)
    yield from _find_strategy_problems(document)
    yield from _find_update_strategy_problems(document)


def _find_template_problems(template: Document) -> Iterator[str]:
    head = {"apiVersion": "v1", "kind": "Pod"}
    pod = decode_pod({**head, "metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}})
    yield from find_pod_spec_problems(template.get("spec") or {}, "spec.template.spec")
    yield from (_format_problem(f"$.spec.template{problem.removeprefix('$')}") for problem in find_pod_problems(pod))
    if value_at(template, "spec.restartPolicy") not in (None, "Always"):
        yield 'spec.template.spec.restartPolicy: Unsupported value: supported values: "Always"'


def _find_strategy_problems(document: Document) -> Iterator[str]:
    """Check the strategy of a Deployment."""
    type_ = value_at(document, "spec.strategy.type")
    if type_ not in (None, "Recreate", "RollingUpdate"):
        supported = '"Recreate", "RollingUpdate"'
        yield f'spec.strategy.type: Unsupported value: "{type_}": supported values: {supported}'
    if type_ == "Recreate" and value_at(document, "spec.strategy.rollingUpdate") is not None:
        yield "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"
    rolling_update = value_at(document, "spec.strategy.rollingUpdate") or {}
    for name, value in rolling_update.items():
        yield from _find_amount_problems(value, f"spec.strategy.rollingUpdate.{name}")
    if [rolling_update.get(name) in (0, "0%") for name in ("maxSurge", "maxUnavailable")] == [True, True]:
        reason = "may not be 0 when `maxSurge` is 0"
        yield f"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: {rolling_update['maxUnavailable']}: {reason}"


def _find_update_strategy_problems(document: Document) -> Iterator[str]:
    """Check the updateStrategy of a DaemonSet or StatefulSet: its type, and the amounts of a rolling update."""
    type_ = value_at(document, "spec.updateStrategy.type")
    if type_ not in (None, "", "OnDelete", "RollingUpdate"):
        yield f"spec.updateStrategy: Invalid value: \"{type_}\": must be 'RollingUpdate' or 'OnDelete'"
    rolling_update = value_at(document, "spec.updateStrategy.rollingUpdate") or {}
    for name in ("maxSurge", "maxUnavailable"):
        yield from _find_amount_problems(rolling_update.get(name), f"spec.updateStrategy.rollingUpdate.{name}")
    if (partition := rolling_update.get("partition") or 0) < 0:
        reason = "must be greater than or equal to 0"
        yield f"spec.updateStrategy.rollingUpdate.partition: Invalid value: {partition}: {reason}"


def _find_budget_problems(document: Document) -> Iterator[str]:
    spec = document.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield "spec: Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from _find_amount_problems(spec.get(name), f"spec.{name}")


def _find_amount_problems(value: int | str | None, path: str) -> Iterator[str]:
    """Check a number or percentage of pods."""
    if isinstance(value, int) and value < 0:
        yield f"{path}: Invalid value: {value}: must be greater than or equal to 0"
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        yield f'{path}: Invalid value: "{value}": a valid percent string must be a numeric string followed by a %'
    elif isinstance(value, str) and int(value[:-1]) > 100 and not path.endswith("maxSurge"):
        yield f'{path}: Invalid value: "{value}": must not be greater than 100%'


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


def _format_problem(problem: str) -> str:
    """Format our `$.spec.x: expected …` the way the API server writes it."""
    path, _, rest = problem.partition(": ")
    return f"{path.removeprefix('$.')}: Invalid value: {rest}"
