"""Pods as they are created: the policy that holds is found, spot or on-demand is decided, and what to add is answered.

Called by serve.admission, and by the embedded cluster's store. Never a reason for a pod not to be created: whatever is
in doubt is answered without a patch, and counted. Pods made alike, as the replicas of one template are, get the same
patch: it is built once. A reply depends on the mirror, on decisions in flight, and on the nonces it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from wukong.api.core import Pod, PriorityClass
from wukong.api.json_values import check_depth, load_json
from wukong.api.kinds import PRIORITY_CLASSES
from wukong.api.meta import controller_of
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan
from wukong.placement.matching import NO_POLICY, Match
from wukong.placement.pods import CapacityCounts, build_pod, read_mark, split
from wukong.placement.pods.priority import UNUSED
from wukong.placement.rule import Rules
from wukong.placement.rules import BUILT_IN
from wukong.placement.slices import Slices, finish
from wukong.ports import Document
from wukong.replies.admission.capacity_index import CapacityIndex, group_of
from wukong.replies.admission.decisions import NONCE, Decision, Decisions, Group
from wukong.replies.admission.json_patch import build_json_patch, escape
from wukong.replies.admission.quotas import QuotaCache, adds_cross_namespace_affinity
from wukong.replies.admission.reply import MOST_WARNING_CHARACTERS, PodRequest, Reply
from wukong.replies.extender.policy_cache import PolicyCache
from wukong.state import State

# What a patch never depends on: how pods are to be run, not where.
UNREAD_FIELDS = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes"})
_SOME_CONTAINERS = [{"name": "main", "image": "main"}]
_MOST_CACHED = 2048
_MOST_KEY_BYTES = 8 << 10  # a pod that says more is worked out each time
_NONCE_PATH = f"/metadata/annotations/{escape(NONCE)}"
_CROSS_NAMESPACE = "a ResourceQuota of the namespace counts pods with affinity across namespaces"
_encode = msgspec.json.Encoder().encode


class AdmissionSettings(msgspec.Struct, frozen=True):
    left_alone: frozenset[str] = frozenset({"kube-system"})  # namespaces
    gpu_names: tuple[str, ...] = GPU_NAMES


class _Addition(NamedTuple):
    """What is added to pods made alike."""

    operations: bytes  # JSON, comma separated; b"" for none
    capacity: str = ""  # that the pod is meant for; "" for any
    skipped: tuple[str, ...] = ()


class PodAdmission:
    def __init__(
        self,
        state: State,
        make_nonce: Callable[[], str],
        settings: AdmissionSettings | None = None,
        *,
        rules: Rules = BUILT_IN,
    ) -> None:
        """`make_nonce` gives a text that no other decision has."""
        self.state, self.settings, self._make_nonce = state, settings or AdmissionSettings(), make_nonce
        self.policies = PolicyCache(state, rules, Plan(name=NO_POLICY), self.settings.gpu_names)
        self.decisions = Decisions()
        self._arrival_count = 0  # pods whose decisions have been forgotten
        self._additions: dict[tuple[Plan, str, bytes], _Addition] = {}
        self._classes: Mapping[str, PriorityClass] = {}
        self._classes_version = -1
        self._quotas = QuotaCache(state)
        state.index_of(CapacityIndex)  # from the start: to count all pods of a large cluster at once takes long

    def review(self, request: PodRequest, now: float) -> Reply:
        return finish(self.review_in_slices(request, now))

    def review_in_slices(self, request: PodRequest, now: float) -> Slices[Reply]:
        if request.namespace in self.settings.left_alone:
            return Reply("left-alone")
        policies = yield from self.policies.read_in_slices()
        request.meta.namespace = request.namespace
        match = yield from policies.find_in_slices(Pod(metadata=request.meta))
        plan = match.plan
        if plan.name == NO_POLICY:
            return Reply("no-policy")
        if not plan.is_applied:
            return Reply("not-applied")
        if not plan.is_enforced:
            return Reply("observed")
        return self._apply(request, match, now)

    def _apply(self, request: PodRequest, match: Match, now: float) -> Reply:
        plan, group = match.plan, group_of(request.namespace, request.meta)
        if plan.split is not None:
            self._forget_arrivals()
        known = self.decisions.find(request.meta.annotations.get(NONCE, ""), group, plan, now)
        capacity = known.capacity if known is not None else self._decide(request, plan, group, now)
        try:
            addition = self._find_addition(request, plan, capacity)
        except InputError as error:
            return Reply("unreadable", reasons=error.problems)
        reasons = tuple(f"{plan.name}: {reason}" for reason in addition.skipped)
        warnings = _warn(request, *reasons, *_describe_conflict(match))
        if not addition.operations:
            return Reply("skipped" if reasons else "unchanged", warnings=warnings, reasons=reasons)
        operations = addition.operations
        if addition.capacity and known is None and not request.is_dry_run:
            nonce = self._make_nonce()
            self.decisions.add(nonce, Decision(group, plan, addition.capacity, now))
            # The pod has annotations by then: the mark is one of them.
            operations += b"," + _encode({"op": "add", "path": _NONCE_PATH, "value": nonce})
        return Reply("patched", b"[" + operations + b"]", warnings=warnings, reasons=reasons)

    # ---- spot or on-demand

    def _decide(self, request: PodRequest, plan: Plan, group: Group, now: float) -> str:
        """As the pod's mark says, if it has one of this policy; else what its group lacks, and what is on its way."""
        if plan.split is None:
            return ""
        mark = read_mark(request.meta.annotations)
        return mark.capacity if mark is not None and mark.policy == plan.name else split(plan, self._count(group, now))

    def _count(self, group: Group, now: float) -> CapacityCounts:
        """What is there, and what is on its way."""
        present, coming = self.state.index_of(CapacityIndex).of(group), self.decisions.count(group, now)
        return CapacityCounts(present.on_demand + coming.on_demand, present.spot + coming.spot)

    def _forget_arrivals(self) -> None:
        """Decisions whose pods have come: they are counted as pods now."""
        index = self.state.index_of(CapacityIndex)
        for nonce in index.arrivals_since(self._arrival_count):
            self.decisions.remove(nonce)
        self._arrival_count = index.arrival_count

    # ---- what is added

    def _find_addition(self, request: PodRequest, plan: Plan, capacity: str) -> _Addition:
        self._refresh()
        text = _encode(_build_outline(request))
        if len(text) > _MOST_KEY_BYTES:
            return self._build_addition(text, plan, capacity, request.namespace)
        key = plan, capacity, text
        addition = self._additions.get(key)
        if addition is None:
            if len(self._additions) >= _MOST_CACHED:
                self._additions.clear()
            addition = self._additions[key] = self._build_addition(text, plan, capacity, request.namespace)
        return addition

    def _build_addition(self, outline: bytes, plan: Plan, capacity: str, namespace: str) -> _Addition:
        """Raises InputError for a pod that is nested too deeply."""
        check_depth(outline)
        before, counted = load_json(outline), self._quotas.of(namespace)
        change = build_pod(before, plan, capacity, self._classes, is_counted=counted.counts_class)
        if counted.has_cross_namespace and adds_cross_namespace_affinity(before, change.document):
            return _Addition(b"", skipped=(_CROSS_NAMESPACE,))
        operations = b",".join(map(_encode, build_json_patch(before, change.document)))
        mark = read_mark(change.document["metadata"].get("annotations")) if operations else None
        return _Addition(operations, mark.capacity if mark is not None else "", change.skipped)

    def _refresh(self) -> None:
        """What patches depend on besides pod and policy: where it changed, all are built anew."""
        version = self.state.versions[PRIORITY_CLASSES.group_kind]
        if self._quotas.refresh() or version != self._classes_version:
            self._classes_version, self._additions = version, {}
            self._classes = {
                entry.metadata.name: entry
                for entry in self.state.all(PriorityClass)
                if UNUSED not in entry.metadata.annotations  # about to be deleted: its pods would be refused
            }


def _build_outline(request: PodRequest) -> Document:
    """The pod as far as a patch depends on it. Whether its containers are valid is for the API server to say."""
    meta = request.meta
    owners = [{"kind": owner.kind, "name": owner.name, "controller": True} for owner in (controller_of(meta),) if owner]
    fields = {"namespace": request.namespace, "labels": meta.labels, "annotations": meta.annotations}
    spec = {name: value for name, value in request.spec.items() if name not in UNREAD_FIELDS}
    return {
        "metadata": {name: value for name, value in {**fields, "ownerReferences": owners}.items() if value},
        "spec": {**spec, "containers": _SOME_CONTAINERS},
    }


def _describe_conflict(match: Match) -> tuple[str, ...]:
    if not match.others:
        return ()
    return (f"{match.plan.name} holds, the first by name; just as specific: {match.describe_others()}",)


def _warn(request: PodRequest, *texts: str) -> tuple[str, ...]:
    """For people: a controller that makes pods would write every warning into its log, for every pod."""
    if request.meta.owner_references:
        return ()
    return tuple(f"wukong: {text}"[:MOST_WARNING_CHARACTERS] for text in texts)
