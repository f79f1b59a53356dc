"""What is asked before an object is stored, and what is answered. serve.admission reads the one, writes the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from wukong.api.meta import ObjectMeta

Result = Literal[
    "patched",  # something was added
    "unchanged",  # there was nothing to add
    "observed",  # the policy observes only
    "no-policy",  # none selects the pod
    "not-applied",  # the policy leaves admission alone
    "left-alone",  # of a namespace that is never touched, or nothing that we answer for
    "skipped",  # in doubt: what we would add might keep the pod from being created
    "unreadable",  # what we were sent makes no sense to us
    "unsynced",  # we do not know the cluster yet
    "late",  # we were not done in time
    "failed",  # we failed; the log says how
    "accepted",  # an object of our own kinds is understood
    "denied",  # it is not, and the message says why
]
MOST_WARNING_CHARACTERS = 256  # of what kubectl shows; the API server cuts longer ones


class PodRequest(NamedTuple):
    """A pod that is about to be created."""

    namespace: str
    meta: ObjectMeta
    spec: Mapping[str, msgspec.Raw]
    is_dry_run: bool = False


class ObjectRequest(NamedTuple):
    """An object of our own kinds that is about to be stored. `old` is what it was, or null."""

    group_kind: str
    document: msgspec.Raw
    old: msgspec.Raw


class Reply(NamedTuple):
    result: Result
    patch: bytes = b""  # a JSON patch, or nothing
    message: str = ""  # why it is denied
    warnings: tuple[str, ...] = ()  # for whoever creates it
    reasons: tuple[str, ...] = ()  # for the log: why nothing, or not everything, was added

    @property
    def is_allowed(self) -> bool:
        return self.result != "denied"
