"""What an extender answers, as bytes: ExtenderFilterResult, HostPriorityList, ExtenderPreemptionResult.

Called by serve.extender. Encoded names are joined with what stands between them, for all nodes of one reason at once;
node objects go back byte for byte. It never leaves a node out: who is offered is kept or refused, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from wukong.serve.extender.offered_nodes import FleetNames, Offer, encode_host_priority
from wukong.serve.extender.request import Victims

Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.integer]


class RefusedNodes(Protocol):
    @property
    def reason(self) -> str: ...

    @property
    def mask(self) -> Mask: ...

    @property
    def is_final(self) -> bool: ...


class FilterResult(Protocol):
    @property
    def kept(self) -> Mask: ...

    @property
    def refusals(self) -> Sequence[RefusedNodes]: ...


def encode_filter_result(offer: Offer, result: FilterResult) -> bytes:
    tail = b',"FailedNodes":{%b},"FailedAndUnresolvableNodes":{%b},"Error":""}' % (
        _encode_failures(offer.names, (refusal for refusal in result.refusals if not refusal.is_final)),
        _encode_failures(offer.names, (refusal for refusal in result.refusals if refusal.is_final)),
    )
    if offer.items is None:
        names = b",".join(compress(offer.names, result.kept.tobytes()))
        return b'{"Nodes":null,"NodeNames":[%b]%b' % (names, tail)
    items: list[msgspec.Raw | bytes] = list(compress(offer.items, result.kept.tobytes()))
    return _wrap_items(b'{"Nodes":{"metadata":{},"items":[', items, b']},"NodeNames":null' + tail)


def encode_priorities(offer: Offer, fleet_names: FleetNames, scores: Scores) -> bytes:
    hosts = fleet_names.encode_scores()[scores, offer.rows].tolist()
    for index in np.flatnonzero(offer.rows < 0).tolist():
        hosts[index] = encode_host_priority(offer.names[index], int(scores[index]))
    return b"[%b]" % b",".join(hosts)


def encode_preemption_result(candidates: dict[str, Victims], remaining: Iterable[str]) -> bytes:
    return msgspec.json.encode(
        {"NodeNameToMetaVictims": {node: _meta_victims_of(candidates[node]) for node in remaining}}
    )


def _encode_failures(names: list[bytes], refusals: Iterable[RefusedNodes]) -> bytes:
    """`"a":"reason","b":"reason"`."""
    groups = []
    for refusal in refusals:
        reason = b":" + msgspec.json.encode(refusal.reason)
        if refused := [names[index] for index in np.flatnonzero(refusal.mask).tolist()]:
            groups.append((reason + b",").join(refused) + reason)
    return b",".join(groups)


def _wrap_items(head: bytes, items: list[msgspec.Raw | bytes], tail: bytes) -> bytes:
    """All in one copy: they may be tens of megabytes."""
    if not items:
        return head + tail
    if len(items) == 1:
        return head + bytes(items[0]) + tail
    items[0], items[-1] = head + bytes(items[0]), bytes(items[-1]) + tail
    return b",".join(items)


def _meta_victims_of(victims: Victims) -> dict[str, object]:
    return {"Pods": [{"UID": uid} for uid in victims.uids], "NumPDBViolations": victims.violations}
