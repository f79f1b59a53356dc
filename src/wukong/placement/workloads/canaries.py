"""A canary: a rollout of a Deployment that is paused with a few new pods, judged, and resumed or undone. Pure.

    begin    one patch: the new template, maxSurge N and maxUnavailable 0, and a record of the strategy before
    pause    as soon as N new pods are created
    resume   one patch: goes on with the strategy of before, and the record is gone
    undo     one patch: the template and the strategy of before, not paused, and the record is gone

The record is an annotation of the Deployment, written by the same patch that begins: whoever comes after a crash finds
it (decision 024).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wukong.api.json_values import decode_json
from wukong.api.placement import GROUP
from wukong.errors import InputError
from wukong.placement.workloads.progress import Progress, is_same_template
from wukong.placement.workloads.rules import REVISION
from wukong.ports import Document

ANNOTATION = f"{GROUP}/canary"
Judgement = Literal["waits", "good", "bad"]


class CanaryRecord(msgspec.Struct, frozen=True):
    """How many pods are tried, and what the Deployment was before: its strategy, and the revision of its template."""

    pods: int
    strategy: Document
    revision: int


_decoder = msgspec.json.Decoder(CanaryRecord)


def begin_canary(before: Document, after: Document, pods: int) -> Document:
    """`after` as a canary of so many pods. Raises InputError where there can be none."""
    spec = before["spec"]
    if before.get("kind") != "Deployment":
        raise InputError(f"--canary: expected a Deployment, got a {before.get('kind')}. A StatefulSet has a partition.")
    if (spec.get("strategy") or {}).get("type") == "Recreate":
        raise InputError("--canary: its strategy is Recreate: all old pods go before the first new one comes.")
    if spec.get("paused") or after["spec"].get("paused"):
        raise InputError("--canary: it is paused, and a canary would make it go on. Resume it first.")
    if is_same_template(spec["template"], after["spec"]["template"]):
        raise InputError("--canary: the template stays as it is, so there is no new version to try.")
    if _without_template(before) != _without_template(after):
        raise InputError("--canary: it tries a new template, and more than that would change. Change the rest apart.")
    if not 1 <= pods <= (after["spec"].get("replicas") or 0):
        raise InputError(
            f"--canary: expected 1 to {after['spec'].get('replicas') or 0} pods, its replicas, got {pods}."
        )
    revision = str((before["metadata"].get("annotations") or {}).get(REVISION) or "")
    if not (revision.isascii() and revision.isdigit()):
        raise InputError("--canary: it has no revision to go back to yet.")
    record = CanaryRecord(pods, spec.get("strategy") or {}, int(revision))
    annotations = {**(after["metadata"].get("annotations") or {}), ANNOTATION: msgspec.json.encode(record).decode()}
    return {
        **after,
        "metadata": {**after["metadata"], "annotations": annotations},
        "spec": {**after["spec"], "strategy": build_strategy(pods)},
    }


def _without_template(workload: Document) -> Any:
    meta = workload["metadata"]
    spec = {name: value for name, value in workload["spec"].items() if name != "template"}
    return spec, meta.get("labels"), meta.get("annotations")


def build_strategy(pods: int) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": pods, "maxUnavailable": 0}}


def find_canary(workload: Document) -> CanaryRecord | None:
    """The record of a canary that is under way; None for none.

    Kubernetes copies annotations to ReplicaSets, and kubectl back from there: without a canary's strategy it is stale.
    """
    text = ((workload.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if not isinstance(text, str):
        return None
    try:
        record = decode_json(text.encode("utf-8", "replace"), _decoder)
    except (InputError, msgspec.ValidationError):
        return None
    strategy = (workload.get("spec") or {}).get("strategy")
    return record if strategy == build_strategy(record.pods) else None


def pause(workload: Document) -> Document:
    return {**workload, "spec": {**workload["spec"], "paused": True}}


def end_canary(workload: Document, record: CanaryRecord, template: Document | None = None) -> Document:
    """The Deployment with its own strategy, not paused, and without the record: with its new template, or with this."""
    spec: Document = {**workload["spec"], "strategy": record.strategy}
    spec.pop("paused", None)
    if template is not None:
        spec["template"] = template
    annotations = {name: text for name, text in workload["metadata"]["annotations"].items() if name != ANNOTATION}
    return {**workload, "metadata": {**workload["metadata"], "annotations": annotations}, "spec": spec}


def judge_canary(progress: Progress, pods: list[Document], record: CanaryRecord) -> tuple[Judgement, str]:
    """Whether the new pods are well, and why not. `pods` are the Deployment's own."""
    new = {place.name: place for place in progress.pods if place.is_new and not place.is_terminating}
    for pod in pods:
        name = pod["metadata"]["name"]
        if name in new and (restarts := _count_restarts(pod)):
            return "bad", f"{name} was restarted {restarts} times"
    available = progress.new_available
    if available >= record.pods:
        return "good", f"{available} new pods are available"
    reasons = "; ".join(place.waits_for for place in new.values() if place.waits_for)
    return "waits", f"{available} of {record.pods} new pods are available{f': {reasons}' if reasons else ''}"


def _count_restarts(pod: Document) -> int:
    statuses: Any = (pod.get("status") or {}).get("containerStatuses")
    counts = [entry.get("restartCount") for entry in statuses or () if isinstance(entry, dict)]
    return sum(count for count in counts if isinstance(count, int))
