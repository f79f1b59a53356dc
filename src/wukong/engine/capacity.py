"""How many more pods like this one fit: place copies on a fork until one fits nowhere, and say why.

Called by `wukong capacity`. Pure: the caller's snapshot is not changed.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np
from msgspec.structs import replace

from wukong.api.core import Pod, VolumeClaimSource
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.engine.decision import Preemption
from wukong.engine.explain import NodeGroup, group_nodes
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import NONZERO_MEMORY, PODS
from wukong.semantics.volume_claims import list_claims

_FIRST_CHUNK = 128
_LARGEST_CHUNK = 4096  # about a tenth of a second on 5,000 nodes, for rules that are decided pod by pod some seconds

PlaceCopies = Callable[[Scheduler, int, str], list[str]]


@dataclass(frozen=True)
class Capacity:
    pod: str
    nodes: int
    fits: int
    per_node: dict[str, int]  # node → how many of them it took, most first; nodes that took none are left out
    reason: str  # why not one more
    is_limited: bool  # more would fit, but no more were asked for
    preemption: Preemption | None  # whom the next one would evict to fit all the same
    refusals: tuple[NodeGroup, ...] = ()  # why the next one fits nowhere, nodes alike together


def count_capacity(
    scheduler: Scheduler,
    pod: Pod,
    limit: int | None = None,
    report_progress: Callable[[int, int], object] = lambda done, total: None,
    place_copies: PlaceCopies | None = None,
) -> Capacity:
    """Place up to `limit` copies one after the other, on a fork. Calls `report_progress(done, total)` now and then.

    `place_copies` places so many more under keys that begin with this one, and returns the nodes of those that fit;
    without it the engine does so in batches.
    """
    trial = Scheduler(scheduler.snapshot.fork(), scheduler.profile, ties=scheduler.ties, plugins=scheduler.plugins)
    most = count_upper_bound(trial, pod)
    total = most if limit is None else min(limit, most)
    placed_per_node: Tally[str] = Tally()
    done, chunk = 0, _FIRST_CHUNK
    while limit is None or done < limit:
        wanted = chunk if limit is None else min(chunk, limit - done)
        # No pod is called "x#1-7", so the copies displace nobody.
        key = f"{pod.key}#{done}"
        nodes = place_copies(trial, wanted, key) if place_copies else trial.place_many(pod, wanted, key)
        placed_per_node.update(nodes)
        done += len(nodes)
        report_progress(done, total)
        if len(nodes) < wanted:
            break
        chunk = min(2 * chunk, _LARGEST_CHUNK)
    trial.snapshot.views.clear()  # a plugin may have to be asked anew
    after = trial.decide(pod)
    is_limited = bool(after.feasible)
    return Capacity(
        pod=pod.key,
        nodes=len(trial.snapshot.rows),
        fits=done,
        per_node=dict(sorted(placed_per_node.items(), key=lambda entry: (-entry[1], entry[0]))),
        reason=f"limit of {limit} reached, more would fit" if is_limited else after.message or after.error,
        is_limited=is_limited,
        preemption=after.preemption,
        refusals=() if is_limited else group_nodes(trial.view_of(pod), after),
    )


def copy_claims(pod: Pod, own_claims: frozenset[str]) -> PlaceCopies:
    """Place copies each of which has these claims of its own; others they share."""
    numbers = count()
    return lambda trial, wanted, _: _place_with_own_claims(
        trial, pod, own_claims, [next(numbers) for _ in range(wanted)]
    )


def _place_with_own_claims(trial: Scheduler, pod: Pod, own_claims: frozenset[str], numbers: list[int]) -> list[str]:
    """Place copies whose claims are copies, too, until one does not fit."""
    nodes: list[str] = []
    for number in numbers:
        facts, namespace = trial.snapshot.facts.volumes, pod.metadata.namespace
        copy = _rename_claims(pod, own_claims, number)
        claims: dict[Key, Object | None] = {}
        for claim, own in zip(list_claims(pod), list_claims(copy), strict=True):
            if claim.name in own_claims:
                original = facts.claims[Key(namespace, claim.name)]
                meta = replace(original.metadata, name=own.name, uid=f"{original.metadata.uid}#{number}")
                claims[Key(namespace, own.name)] = replace(original, metadata=meta)
        trial.snapshot.set_volumes(facts.with_changes({PERSISTENT_VOLUME_CLAIMS.group_kind: claims}))
        node = trial.place(copy)
        if node is None:
            trial.snapshot.set_volumes(facts)
            break
        nodes.append(node)
    return nodes


def _rename_claims(pod: Pod, own_claims: frozenset[str], number: int) -> Pod:
    volumes = [
        replace(volume, persistent_volume_claim=VolumeClaimSource(claim_name=f"{claim.claim_name}#{number}"))
        if (claim := volume.persistent_volume_claim) is not None and claim.claim_name in own_claims
        else volume
        for volume in pod.spec.volumes
    ]
    meta = replace(pod.metadata, name=f"{pod.metadata.name}#{number}")  # the claims of ephemeral volumes go by it
    return replace(pod, metadata=meta, spec=replace(pod.spec, volumes=volumes))


def count_upper_bound(scheduler: Scheduler, pod: Pod) -> int:
    """How many fit at most: what the feasible nodes have left, whatever rules the pods have among themselves."""
    view = scheduler.view_of(pod)
    view.sync()
    snapshot = scheduler.snapshot
    vector = snapshot.vector_of(view.template)
    free = np.maximum(snapshot.room - snapshot.load, 0)
    counted = [line for line in range(len(vector)) if vector[line] > 0 and (line == PODS or line > NONZERO_MEMORY)]
    per_node = np.min([free[line] // vector[line] for line in counted], axis=0)
    return int(per_node[view.feasible].sum())
