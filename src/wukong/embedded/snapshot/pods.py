"""The pods of a snapshot: what they lack is completed, and those that do not come up are found. Called by load.py.

A pod that runs is taken as running, with the times of its status. One that was not ready for longer than any start
takes, or whose container cannot start, is stuck: its kubelet leaves it as it is, because nothing says that it would
ever be ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from wukong.embedded.store.documents import condition_of, format_time, meta_of, parse_time, value_at
from wukong.embedded.store.normalize import NormalForms, is_normal, normalize
from wukong.ports import Document

FillIn = Callable[[Document], Document]

PATIENCE = 300.0  # a pod that is not ready after so many seconds is not merely starting
_FIELDS = frozenset({"kind", "apiVersion", "metadata", "spec", "status"})
_OWN_FIELDS = ("affinity", "hostname", "nodeName")  # that pods of one workload may have each of their own; no defaults
_encode = msgspec.json.Encoder().encode
_CANNOT_START = ("BackOff", "Err", "Invalid", "Config", "CreateContainerError", "RunContainerError")


class PodCompletion:
    """Fills in what the pods of a snapshot lack. What they have alike is worked out once, and shared."""

    def __init__(self, fill_in: FillIn) -> None:
        """`fill_in` gives a pod in normal form with its defaults."""
        self._fill_in = fill_in
        self._specs: dict[bytes, Document] = {}
        self._normal_forms = NormalForms()

    def complete(self, pod: Document, now: float) -> Document:
        """Return the pod completed. One written by hand, with a node and without a status, runs and is ready."""
        meta, spec, status = pod["metadata"], pod.get("spec"), pod.get("status")
        if not isinstance(spec, dict) or not pod.keys() <= _FIELDS:
            pod = self._fill_in(pod)
            meta, spec, status = pod["metadata"], pod["spec"], pod.get("status")
        completed_spec = self._complete_spec(meta, spec)
        meta = meta if self._normal_forms.has(meta) else normalize(meta)
        status = {**(status if self._normal_forms.has(status) else normalize(status))} if status else {}
        _complete_status(status, meta, completed_spec, now)
        return {**pod, "metadata": meta, "spec": completed_spec, "status": status}

    def _complete_spec(self, meta: Document, spec: Document) -> Document:
        rest, own = {**spec}, dict[str, Any]()
        for name in _OWN_FIELDS:
            if name in rest and (value := rest.pop(name)):
                own[name] = value
        text = _encode(rest)
        shared = self._specs.get(text)
        if shared is None:
            shared = self._specs[text] = self._fill_in({"metadata": meta, "spec": rest})["spec"]
            shared.setdefault("containers", [])
        if "affinity" in own and not is_normal(own["affinity"]):
            own["affinity"] = normalize(own["affinity"])
        return {**shared, **own} if own else shared


def _complete_status(status: Document, meta: Document, spec: Document, now: float) -> None:
    if not spec.get("nodeName"):
        status.setdefault("phase", "Pending")
        return
    created = meta.get("creationTimestamp") or format_time(now)
    if status.setdefault("phase", "Running") == "Running" and not status.get("conditions"):
        status.setdefault("startTime", created)
        status["conditions"] = [
            {"type": kind, "status": "True", "lastTransitionTime": status["startTime"]}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
    if status["phase"] == "Running" and not status.get("containerStatuses"):
        status["containerStatuses"] = [
            {"name": container.get("name", ""), "ready": True, "state": {"running": {"startedAt": created}}}
            for container in spec["containers"]
        ]


def find_stuck(pods: Iterable[Document], now: float) -> tuple[frozenset[str], list[str]]:
    """The uids of pods that stay as they are, and the notes about them."""
    stuck = [pod for pod in pods if _is_stuck(pod, now)]
    if not stuck:
        return frozenset(), []
    names = ", ".join(f"{meta_of(pod)['namespace']}/{meta_of(pod)['name']}" for pod in stuck[:3])
    more = f" and {len(stuck) - 3} more" if len(stuck) > 3 else ""
    note = f"{names}{more}: not ready in the snapshot, for long or for a reason that does not pass; they stay so."
    return frozenset(meta_of(pod)["uid"] for pod in stuck), [note]


def _is_stuck(pod: Document, now: float) -> bool:
    is_bound = bool(value_at(pod, "spec.nodeName"))
    if not is_bound or value_at(pod, "status.phase") in ("Succeeded", "Failed") or "deletionTimestamp" in meta_of(pod):
        return False
    if (condition_of(pod, "Ready") or {}).get("status") == "True":
        return False
    statuses = value_at(pod, "status.containerStatuses") or []
    reasons = [value_at(status, "state.waiting.reason") or "" for status in statuses]
    if any(word in reason for reason in reasons for word in _CANNOT_START):
        return True
    since = value_at(pod, "status.startTime") or meta_of(pod).get("creationTimestamp") or format_time(now)
    return now - parse_time(since) > PATIENCE
