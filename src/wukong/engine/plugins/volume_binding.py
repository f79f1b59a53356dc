"""VolumeBinding: where the volumes of a pod's claims are, or could be bound or made.

Every refusal is final: taking pods off a node brings no volume. As a score it prefers nodes of whose storage the claims
would use the smaller part, in versions that score storage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wukong.api.core import NodeSelector, PersistentVolume, PersistentVolumeClaim
from wukong.api.quantity import parse_quantity, units
from wukong.api.storage import NO_PROVISIONER, CSIStorageCapacity, StorageClass
from wukong.engine.arrays import Ints, Mask, Rows
from wukong.engine.plugin import MAX_SCORE, FilterPart, Load, Plugin, Reason, Scope, ScorePart
from wukong.engine.plugins.node_affinity import match_labels, match_node_selector
from wukong.engine.plugins.volume_filter import Failing, VolumeFilter
from wukong.engine.pod_claims import UNBOUND, PodClaims, list_unbound_claims
from wukong.engine.refusal_detail import RefusalDetail, describe_requirement
from wukong.engine.view import View
from wukong.engine.volume_use import list_capacities
from wukong.semantics.selectors import compile_selector
from wukong.semantics.volume_claims import class_of_claim, list_candidates, size_of_claim, size_of_volume

NODE_CONFLICT = Reason("node(s) didn't match PersistentVolume's node affinity")
BIND_CONFLICT = Reason("node(s) didn't find available persistent volumes to bind")
NOT_ENOUGH_SPACE = Reason("node(s) did not have enough free storage")
_NOT_WAITING = "it is not bound, and binding it does not wait for a pod"
NO_VOLUME = Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")


class VolumeBinding(Plugin):
    name = "VolumeBinding"

    def filter(self, view: View) -> FilterPart | None:
        return BindingFilter(view) if view.template.has_volumes else None

    def score(self, view: View) -> ScorePart | None:
        scores_storage = view.template.has_volumes and view.profile.version.storage_capacity_scores
        return StorageScore(BindingFilter(view)) if scores_storage else None


class StorageUse(NamedTuple):
    """What a claim would use of a class where `mask`: requested and offered bytes [node]."""

    class_name: str
    requested: int
    offered: Ints
    mask: Mask


class UnusableClaim(NamedTuple):
    """Where a claim cannot be used, and why not."""

    claim: PersistentVolumeClaim
    mask: Mask  # [node]
    why: str
    volume: PersistentVolume | None = None


class BindingFilter(VolumeFilter):
    follows_use = True

    def read_problem(self, claims: PodClaims) -> str:
        return claims.binding_problem

    def blocks_itself(self) -> bool | None:
        return False if self.claims.is_settled else None

    def compute(self) -> Failing:
        self.static: list[StorageUse] = []
        self.dynamic: list[StorageUse] = []
        self.unusable: list[UnusableClaim] = []
        conflict, lost = self._check_bound()
        unmatched, is_small = self._check_unbound()
        answers = ((NODE_CONFLICT, conflict), (BIND_CONFLICT, unmatched), (NOT_ENOUGH_SPACE, is_small))
        return [(reason, mask) for reason, mask in (*answers, (NO_VOLUME, lost)) if mask.any()]

    def describe_problem(self) -> list[RefusalDetail]:
        if self.problem != UNBOUND:
            return []  # it names the claim itself
        claims = list_unbound_claims(self.facts, self.template.pod)
        return [_describe_claim(UnusableClaim(claim, self.make_mask(), _NOT_WAITING)) for claim in claims]

    def describe_node(self, row: int) -> list[RefusalDetail]:
        return [_describe_claim(entry) for entry in self.unusable if entry.mask[row]]

    def _check_bound(self) -> tuple[Mask, Mask]:
        """[node] out of reach of a bound volume; and a volume is gone. The first claim that does not suit decides."""
        conflict, lost = self.make_mask(), self.make_mask()
        for claim in self.claims.bound:
            volume = self.facts.find_volume(claim.spec.volume_name)
            if volume is None:
                self.unusable.append(UnusableClaim(claim, ~conflict, f"its volume {claim.spec.volume_name} is gone"))
                return conflict, lost | ~conflict
            outside = ~self._find_reach(volume)
            self.unusable.append(UnusableClaim(claim, outside, "is out of reach", volume))
            conflict |= outside
        return conflict, lost

    def _check_unbound(self) -> tuple[Mask, Mask]:
        """[node] no volume there, and none can be made; and too little storage to make one."""
        use, rows = self.snapshot.volume_use, self.snapshot.rows
        refused, is_small = self.make_mask(), self.make_mask()
        selected = [(claim, use.find_selected_node(claim)) for claim in self.claims.unbound]
        for claim, node in selected:
            if node is not None:
                elsewhere = np.array([row.name != node for row in rows], dtype=np.bool_)
                self.unusable.append(UnusableClaim(claim, elsewhere, f"its volume is to be made on {node}"))
                refused |= elsewhere
        everywhere = ~self.make_mask()
        wanted = [(claim, everywhere) for claim, node in selected if node is not None]
        taken: dict[str, Mask] = {}
        for claim in sorted((claim for claim, node in selected if node is None), key=size_of_claim):
            wanted.append((claim, ~self._match_volumes(claim, taken)))
        for claim, mask in wanted:
            self._provision(claim, mask & ~refused & ~is_small, refused, is_small)
        return refused, is_small

    def _match_volumes(self, claim: PersistentVolumeClaim, taken: dict[str, Mask]) -> Mask:
        """[node] whether a volume is there for the claim; `taken` are the nodes on which one is another claim's.

        A volume that is kept for the claim stands before all others, except where it is taken: a pod may name a claim
        twice.
        """
        volumes = self.facts.volumes_by_class.get(class_of_claim(claim), [])
        matched, open_nodes = self.make_mask(), ~self.make_mask()
        while open_nodes.any():
            kept, suitable = list_candidates(claim, volumes, self.snapshot.volume_use.find_reference)
            elsewhere = taken.get(kept.metadata.name) if kept is not None else None
            for volume in suitable if kept is None else [kept]:
                self._match_volume(volume, claim, open_nodes, taken, matched)
            if kept is None or elsewhere is None:
                break
            open_nodes, volumes = open_nodes & elsewhere, [volume for volume in volumes if volume is not kept]
        return matched

    def _match_volume(
        self, volume: PersistentVolume, claim: PersistentVolumeClaim, nodes: Mask, taken: dict[str, Mask], matched: Mask
    ) -> None:
        """Note on which of these nodes the volume is used for the claim: where no other one is."""
        name = volume.metadata.name
        matching = self._find_reach(volume) & nodes & ~matched
        if (elsewhere := taken.get(name)) is not None:
            matching &= ~elsewhere
        if matching.any():
            taken[name] = matching if elsewhere is None else elsewhere | matching
            matched |= matching
            self._note_use(self.static, volume.spec.storage_class_name, claim, size_of_volume(volume), matching)

    def _provision(self, claim: PersistentVolumeClaim, wanted: Mask, refused: Mask, is_small: Mask) -> None:
        """Note where a volume for the claim cannot be made."""
        storage_class = self.facts.find_class(class_of_claim(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            self.unusable.append(UnusableClaim(claim, wanted, "no volume there suits it, and its class makes none"))
            refused |= wanted
            return
        outside = wanted & ~self._match_topologies(storage_class)
        self.unusable.append(UnusableClaim(claim, outside, "its class allows no volumes there"))
        refused |= outside
        inside, capacities = wanted & ~outside, list_capacities(self.facts, claim, storage_class)
        if capacities is None:
            return
        reached = self.make_mask()
        for capacity in capacities:
            matching = self._match_capacity(capacity) & inside & ~reached
            self._note_use(self.dynamic, class_of_claim(claim), claim, parse_quantity(capacity.capacity or 0), matching)
            reached |= matching
        self.unusable.append(UnusableClaim(claim, inside & ~reached, "too little storage of its class is left there"))
        is_small |= inside & ~reached

    def _match_topologies(self, storage_class: StorageClass) -> Mask:
        """[node] whether one of the terms holds; a term without expressions never does."""
        if not storage_class.allowed_topologies:
            return ~self.make_mask()
        allowed = self.make_mask()
        for term in storage_class.allowed_topologies:
            if term.match_label_expressions:
                selector = tuple((entry.key, "In", frozenset(entry.values)) for entry in term.match_label_expressions)
                allowed |= match_labels(self.snapshot, selector)
        return allowed

    def _match_capacity(self, capacity: CSIStorageCapacity) -> Mask:
        selector = compile_selector(capacity.node_topology)
        return self.make_mask() if selector is None else match_labels(self.snapshot, selector)

    def _find_reach(self, volume: PersistentVolume) -> Mask:
        """[node] whether the volume can be used there, by the node's labels alone; matchFields count as satisfied."""
        required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
        return ~self.make_mask() if required is None else _match_affinity(self, required)

    def _note_use(
        self, uses: list[StorageUse], class_name: str, claim: PersistentVolumeClaim, offered: int, mask: Mask
    ) -> None:
        if self.version.storage_capacity_scores:
            size = np.full(len(mask), units(offered), dtype=np.int64)
            uses.append(StorageUse(class_name, units(size_of_claim(claim)), size, mask))


def _describe_claim(entry: UnusableClaim) -> RefusalDetail:
    claim, volume = entry.claim.key, entry.volume
    if volume is None:
        class_name = class_of_claim(entry.claim)
        return RefusalDetail(
            "claim", f"claim {claim}: {entry.why}", (("claim", claim), ("storageClass", class_name or None))
        )
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    terms = [
        ", ".join(describe_requirement(field.key, field.operator, field.values) for field in term.match_expressions)
        for term in (required.node_selector_terms if required else [])
    ]
    name = volume.metadata.name
    cause = f"volume {name} of claim {claim} can be used only where {' or '.join(terms)}"
    return RefusalDetail("volume", cause, (("claim", claim), ("volume", name)))


def _match_affinity(part: BindingFilter, required: NodeSelector) -> Mask:
    """Most local volumes name one host: looked up, not compared with every other."""
    terms = required.node_selector_terms
    if len(terms) == 1 and len(terms[0].match_expressions) == 1 and not terms[0].match_fields:
        expression = terms[0].match_expressions[0]
        if expression.operator == "In" and len(expression.values) == 1:
            column = part.snapshot.column(expression.key)
            domain = column.domains.get(expression.values[0])
            matches: Mask = part.make_mask() if domain is None else column.ids == domain
            return matches
    return match_node_selector(part.snapshot, required, by_labels_only=True)


class StorageScore(ScorePart):
    """By class of storage: the part of it that stays free, the mean of all classes."""

    scope = Scope.CLUSTER

    def __init__(self, binding: BindingFilter) -> None:
        self.binding = binding
        self.is_new = True

    def refresh(self) -> bool:
        is_new, self.is_new = self.is_new or self.binding.refresh() is not None, False
        return is_new

    def depends_on_own_pods(self) -> bool:
        return not self.binding.claims.is_settled

    def raw(self, rows: Rows, load: Load) -> Ints:
        self.binding.refresh()
        count = len(self.binding.snapshot.rows)
        if self.binding.problem:
            return np.zeros(count, dtype=np.int64)[rows]
        static, dynamic = self.binding.static, self.binding.dynamic
        has_static = self.binding.make_mask()
        for use in static:
            has_static |= use.mask
        uses = [*static, *(use._replace(mask=use.mask & ~has_static) for use in dynamic)]
        total, classes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        for name in dict.fromkeys(use.class_name for use in uses):
            points, counted = _score_class([use for use in uses if use.class_name == name], has_static)
            total += points
            classes += counted
        scored: Ints = np.where(classes > 0, (2 * total + classes) // np.maximum(2 * classes, 1), 0)
        return scored[rows]


def _score_class(uses: list[StorageUse], has_static: Mask) -> tuple[Ints, Mask]:
    """Static volumes add up; all that is made comes out of one pool, the last claim's."""
    requested = sum(np.where(use.mask, use.requested, 0) for use in uses)
    added = sum(np.where(use.mask, use.offered, 0) for use in uses)
    pooled: Ints = np.zeros(len(has_static), dtype=np.int64)
    for use in uses:
        pooled = np.where(use.mask, use.offered, pooled)
    offered = np.where(has_static, added, pooled)
    counted: Mask = np.logical_or.reduce([use.mask for use in uses])
    is_full = (offered == 0) | (requested > offered)
    used = np.where(is_full, MAX_SCORE, requested * MAX_SCORE // np.maximum(offered, 1))
    return np.where(counted, MAX_SCORE - used, 0), counted
