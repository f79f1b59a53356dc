"""Reads latencies off an audit log: from a write until the write that it caused arrives, and how long a write takes.

Pure. rounds.py lets one thing happen at a time in each namespace, so the last cause before an effect is its own. The
hollow kubelets write as the test bed's admin, whom only the resource tells from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

ADMIN, SCHEDULER = "wukong-testbed-admin", "kube-scheduler"


class Write(NamedTuple):
    """One write that succeeded, with the times at which it was received and answered, in seconds."""

    by: str  # the last part of the user's name, such as replicaset-controller
    what: str  # verb, resource and subresource: `update replicasets/status`
    namespace: str  # of a Node: its name
    name: str  # empty where the server makes it up
    received: float
    answered: float


class Kind(NamedTuple):
    """Writes by somebody of one of some kinds, to objects whose names begin like this."""

    by: str
    what: frozenset[str]
    prefix: str = ""

    def includes(self, write: Write) -> bool:
        return write.by == self.by and write.what in self.what and write.name.startswith(self.prefix)


class Reaction(NamedTuple):
    """What a controller writes when it has heard of something."""

    controller: str
    name: str
    causes: tuple[Kind, ...]
    effect: Kind


def _kind(by: str, *what: str) -> Kind:
    return Kind(by, frozenset(what))


_CREATED_PODS = tuple(
    _kind(f"{name}-controller", "create pods") for name in ("replicaset", "statefulset", "daemon-set", "job")
)
_POD_STATUS = _kind(ADMIN, "patch pods/status")
_WEB_POD_STATUS = _POD_STATUS._replace(prefix="web-")  # a pod of the Deployment, which has a budget
REACTIONS = (
    Reaction(
        "deployment",
        "Deployment changed → its ReplicaSet written",
        (_kind(ADMIN, "create deployments", "patch deployments"),),
        _kind("deployment-controller", "create replicasets", "update replicasets"),
    ),
    Reaction(
        "replicaset",
        "ReplicaSet written → a pod created or deleted",
        (_kind("deployment-controller", "create replicasets", "update replicasets"),),
        _kind("replicaset-controller", "create pods", "delete pods"),
    ),
    Reaction("scheduler", "pod created → bound", _CREATED_PODS, _kind(SCHEDULER, "create pods/binding")),
    Reaction("kubelet", "pod bound → its status written", (_kind(SCHEDULER, "create pods/binding"),), _POD_STATUS),
    Reaction(
        "replicaset",
        "pod's status written → its ReplicaSet's",
        (_WEB_POD_STATUS,),
        _kind("replicaset-controller", "update replicasets/status"),
    ),
    Reaction(
        "deployment",
        "ReplicaSet's status written → its Deployment's",
        (_kind("replicaset-controller", "update replicasets/status"),),
        _kind("deployment-controller", "update deployments/status"),
    ),
    Reaction(
        "replicaset",
        "pod evicted → another created",
        (_kind(ADMIN, "create pods/eviction"),),
        _kind("replicaset-controller", "create pods"),
    ),
    Reaction(
        "disruption",
        "pod's status written → its budget's",
        (_WEB_POD_STATUS,),
        _kind("disruption-controller", "update poddisruptionbudgets/status"),
    ),
    Reaction(
        "statefulset",
        "StatefulSet created → its revision created",
        (_kind(ADMIN, "create statefulsets"),),
        _kind("statefulset-controller", "create controllerrevisions"),
    ),
    Reaction(
        "daemonset",
        "DaemonSet created → its revision created",
        (_kind(ADMIN, "create daemonsets"),),
        _kind("daemon-set-controller", "create controllerrevisions"),
    ),
    Reaction(
        "job", "Job created → a pod created", (_kind(ADMIN, "create jobs"),), _kind("job-controller", "create pods")
    ),
    Reaction(
        "garbage",
        "Deployment deleted → its ReplicaSet deleted",
        (_kind(ADMIN, "delete deployments"),),
        _kind("generic-garbage-collector", "delete replicasets"),
    ),
    Reaction(
        "nodelifecycle",
        "Node cordoned → tainted",
        (_kind(ADMIN, "patch nodes"),),
        _kind("node-controller", "patch nodes"),
    ),
)
CONTROLLERS = {reaction.effect.by for reaction in REACTIONS} - {ADMIN}


class _User(msgspec.Struct):
    username: str = ""


class _Subject(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Response(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    """The part of a line of the log that is read."""

    verb: str
    request_received_timestamp: str
    stage_timestamp: str
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Subject = msgspec.field(default_factory=_Subject)
    response_status: _Response = msgspec.field(default_factory=_Response)


def read_writes(lines: Iterable[bytes]) -> list[Write]:
    """The writes of a log that succeeded, in the order in which they were answered."""
    decode = msgspec.json.Decoder(_Entry).decode
    writes = [_write_of(entry) for entry in map(decode, lines) if _is_write(entry)]
    return sorted(writes, key=lambda write: write.answered)


def _is_write(entry: _Entry) -> bool:
    return entry.verb in ("create", "update", "patch", "delete") and 200 <= entry.response_status.code < 300


def _write_of(entry: _Entry) -> Write:
    subject = entry.object_ref
    resource = f"{subject.resource}/{subject.subresource}" if subject.subresource else subject.resource
    return Write(
        entry.user.username.rpartition(":")[2],
        f"{entry.verb} {resource}",
        subject.name if subject.resource == "nodes" else subject.namespace,
        subject.name,
        datetime.fromisoformat(entry.request_received_timestamp).timestamp(),
        datetime.fromisoformat(entry.stage_timestamp).timestamp(),
    )


def measure_hearing(writes: Sequence[Write], reaction: Reaction) -> list[float]:
    """Seconds from each cause until its first effect arrives at the server; 0 where that was received first."""
    seconds: list[float] = []
    for namespace in dict.fromkeys(write.namespace for write in writes):
        cause: Write | None = None
        events = sorted(_events_of(writes, reaction, namespace), key=lambda event: event[0])
        for at, is_cause, write in events:
            if is_cause:
                cause = write
            elif cause is not None:
                seconds.append(max(0.0, at - cause.answered))
                cause = None
    return seconds


def _events_of(writes: Sequence[Write], reaction: Reaction, namespace: str) -> Iterable[tuple[float, bool, Write]]:
    """Causes when they are received, for who watches may hear of them before their author; effects, too."""
    for write in writes:
        if write.namespace == namespace:
            if any(kind.includes(write) for kind in reaction.causes):
                yield write.received, True, write
            elif reaction.effect.includes(write):
                yield write.received, False, write


def measure_writing(writes: Sequence[Write], by: str) -> list[float]:
    """Seconds that the writes of somebody took in the server; those of Events, which nobody waits for, left out."""
    return [
        write.answered - write.received for write in writes if write.by == by and not write.what.endswith(" events")
    ]


SHARES = (0.0, 0.5, 0.9, 0.99, 1.0)


def quantiles_of(seconds: Sequence[float]) -> list[float]:
    """The milliseconds that these shares of the measurements do not exceed."""
    ordered = sorted(seconds)
    return [round(ordered[round(share * (len(ordered) - 1))] * 1000, 1) for share in SHARES] if ordered else []
