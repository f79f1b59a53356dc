"""What the API server refuses in workloads: numbers, selectors, strategies, templates. Called by objects.py; pure.

Documents are in their stored form. What cannot change once it is stored is in updates.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wukong.api.meta import LabelSelector
from wukong.embedded.store.documents import meta_of, value_at, without_fields
from wukong.embedded.store.generated_fields import JOB_NAMES, JOB_UIDS
from wukong.embedded.store.validation.claims import find_claim_problems
from wukong.embedded.store.validation.pods.problems import (
    find_below,
    find_unsupported,
    forbidden,
    invalid,
    required,
    unsupported,
)
from wukong.embedded.store.validation.pods.scheduling import find_selector_problems
from wukong.embedded.store.validation.pods.spec import find_template_problems
from wukong.embedded.store.validation.pods.syntax import find_name_problems
from wukong.ports import Document
from wukong.semantics.selectors import compile_selector, selects

_PERCENT = re.compile(r"[0-9]+%")
_KEPT = ("Retain", "Delete")


def find_workload_problems(kind: str, document: Document, known: Document) -> Iterator[str]:
    """Check a workload of one of Kubernetes' kinds. `known` is what was stored and checked before, or nothing."""
    spec = document.get("spec") or {}
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        if (kind, field) not in (("DaemonSet", "replicas"), ("StatefulSet", "revisionHistoryLimit")):
            yield from find_below(spec.get(field), 0, f"spec.{field}")
    yield from _find_own_selector_problems(kind, spec)
    template = spec.get("template")
    if template is None:
        yield required("spec.template")
    elif template is not value_at(known, "spec.template"):
        yield from find_template_problems(_template_as_checked(kind, spec, template), "spec.template")
        yield from _find_lasting_pod_problems(kind, template.get("spec") or {})
    if kind == "Job":
        yield from _find_job_label_problems(document)
    if kind in _BY_KIND:
        yield from _BY_KIND[kind](spec, bool(known))


def _template_as_checked(kind: str, spec: Document, template: Document) -> Document:
    """Pods of a StatefulSet have names of their own, and volumes of its claims in place of those of the same name."""
    if kind != "StatefulSet":
        return template
    claims = [value_at(claim, "metadata.name") for claim in spec.get("volumeClaimTemplates") or []]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
    pod_spec = without_fields(template.get("spec") or {}, "hostname", "subdomain")
    volumes += [volume for volume in pod_spec.get("volumes") or [] if volume.get("name") not in claims]
    return {**template, "spec": {**pod_spec, "volumes": volumes}}


def _find_lasting_pod_problems(kind: str, pod_spec: Document) -> Iterator[str]:
    """Pods that are replaced forever restart always; those of a Job end."""
    policy, path = pod_spec.get("restartPolicy"), "spec.template.spec.restartPolicy"
    if kind == "Job":
        if policy == "Always":
            yield required(path, 'valid values: "OnFailure", "Never"')
        elif policy not in ("OnFailure", "Never"):
            yield unsupported(path, policy, ("OnFailure", "Never"))
        return
    if policy != "Always":
        yield unsupported(path, policy, ("Always",))
    if "activeDeadlineSeconds" in pod_spec:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def _find_own_selector_problems(kind: str, spec: Document) -> Iterator[str]:
    labels = value_at(spec, "template.metadata.labels") or {}
    selector = spec.get("selector")
    if kind == "ReplicationController":
        if not selector:
            yield required("spec.selector")
        elif "template" in spec and not selector.items() <= labels.items():
            yield _describe_mismatch(labels)
        return
    if selector is None:
        if kind != "DaemonSet":
            yield required("spec.selector")
        else:
            yield _describe_mismatch(labels)
        return
    problems = list(find_selector_problems(selector, "spec.selector"))
    yield from problems
    if not selector.get("matchLabels") and not selector.get("matchExpressions") and kind != "Job":
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind.lower()}")
    elif not problems and not selects(compile_selector(msgspec.convert(selector, LabelSelector)), labels):
        yield _describe_mismatch(labels)


def _describe_mismatch(labels: Document) -> str:
    return invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _find_deployment_problems(spec: Document, is_known: bool) -> Iterator[str]:
    strategy = spec.get("strategy") or {}
    type_, rolling_update = strategy.get("type"), strategy.get("rollingUpdate")
    if type_ == "Recreate":
        if rolling_update is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden("spec.strategy.rollingUpdate", detail)
    elif type_ == "RollingUpdate":
        path = "spec.strategy.rollingUpdate"
        assert rolling_update is not None, "it has defaults"
        surge, unavailable = rolling_update["maxSurge"], rolling_update["maxUnavailable"]
        yield from find_amount_problems(unavailable, f"{path}.maxUnavailable", is_share=True)
        yield from find_amount_problems(surge, f"{path}.maxSurge")
        if _is_zero(surge) and _is_zero(unavailable):
            yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    else:
        yield unsupported("spec.strategy", type_, ("Recreate", "RollingUpdate"))
    deadline = spec.get("progressDeadlineSeconds")
    yield from find_below(deadline, 0, "spec.progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _find_daemon_set_problems(spec: Document, is_known: bool) -> Iterator[str]:
    strategy, path = spec.get("updateStrategy") or {}, "spec.updateStrategy.rollingUpdate"
    type_, rolling_update = strategy.get("type"), strategy.get("rollingUpdate") or {}
    if type_ not in ("RollingUpdate", "OnDelete"):
        yield unsupported("spec.updateStrategy", type_, ("RollingUpdate", "OnDelete"))
    elif type_ == "RollingUpdate":
        surge, unavailable = rolling_update["maxSurge"], rolling_update["maxUnavailable"]
        yield from find_amount_problems(unavailable, f"{path}.maxUnavailable", is_share=True)
        yield from find_amount_problems(surge, f"{path}.maxSurge", is_share=True)
        if not _is_zero(surge) and not _is_zero(unavailable):
            yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
        elif _is_zero(surge) and _is_zero(unavailable):
            yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _find_stateful_set_problems(spec: Document, is_known: bool) -> Iterator[str]:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    type_, rolling_update = strategy.get("type"), strategy.get("rollingUpdate")
    if type_ not in ("RollingUpdate", "OnDelete"):
        yield invalid("spec.updateStrategy", type_, "must be 'RollingUpdate' or 'OnDelete'")
    elif type_ == "OnDelete" and rolling_update is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid("spec.updateStrategy.rollingUpdate", rolling_update, detail)
    elif type_ == "RollingUpdate":
        partition = (rolling_update or {}).get("partition")
        yield from find_below(partition, 0, "spec.updateStrategy.rollingUpdate.partition")
    for field, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        yield from find_unsupported(value, _KEPT, f"spec.persistentVolumeClaimRetentionPolicy.{field}")
    yield from find_below((spec.get("ordinals") or {}).get("start"), 0, "spec.ordinals.start")
    if is_known:  # neither can change
        return
    if spec.get("serviceName"):
        yield from find_name_problems(spec["serviceName"], "spec.serviceName")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or []):
        yield from find_claim_problems(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")


def _find_job_label_problems(job: Document) -> Iterator[str]:
    """The pods of a Job carry its name and its uid, which the server wrote there, unless it has an own selector."""
    spec, meta = job["spec"], meta_of(job)
    labels = value_at(spec, "template.metadata.labels") or {}
    if spec.get("manualSelector"):
        return
    wanted = {**dict.fromkeys(JOB_NAMES, meta["name"]), **dict.fromkeys(JOB_UIDS, meta["uid"])}
    for key, value in wanted.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            yield required(path, f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(path, labels[key], f"must be '{value}'")


def _find_job_problems(spec: Document, is_known: bool) -> Iterator[str]:
    numbers = (
        *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
        *("backoffLimitPerIndex", "maxFailedIndexes"),
    )
    for field in numbers:
        yield from find_below(spec.get(field), 0, f"spec.{field}")
    mode = spec.get("completionMode")
    yield from find_unsupported(mode, ("NonIndexed", "Indexed"), "spec.completionMode")
    if mode == "Indexed" and "completions" not in spec:
        yield required("spec.completions", "when completion mode is Indexed")
    if mode == "Indexed" and spec.get("maxFailedIndexes", 0) > spec.get("completions", 0):
        yield invalid("spec.maxFailedIndexes", spec["maxFailedIndexes"], "must be less than or equal to completions")
    if mode == "NonIndexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                yield invalid(f"spec.{field}", spec[field], "requires indexed completion mode")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    policy = spec.get("podReplacementPolicy")
    if "podFailurePolicy" in spec:
        yield from find_unsupported(policy, ("Failed",), "spec.podReplacementPolicy")
        if value_at(spec, "template.spec.restartPolicy") == "OnFailure":
            detail = 'only "Never" is supported when podFailurePolicy is specified'
            yield invalid("spec.template.spec.restartPolicy", "OnFailure", detail)
    else:
        yield from find_unsupported(policy, ("Failed", "TerminatingOrFailed"), "spec.podReplacementPolicy")


def find_amount_problems(value: Any, path: str, *, is_share: bool = False) -> Iterator[str]:
    """Check a number or percentage of pods. With `is_share` it cannot be more than all of them."""
    if isinstance(value, int):
        yield from find_below(value, 0, path)
    elif isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
    elif isinstance(value, str) and is_share and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _is_zero(value: int | str) -> bool:
    """Whether it is no pod, in Go's eyes: what is no percentage counts as none."""
    if isinstance(value, int):
        return value == 0
    return not _PERCENT.fullmatch(value) or int(value[:-1]) == 0


_BY_KIND: dict[str, Callable[[Document, bool], Iterator[str]]] = {
    "Deployment": _find_deployment_problems,
    "DaemonSet": _find_daemon_set_problems,
    "StatefulSet": _find_stateful_set_problems,
    "Job": _find_job_problems,
}
