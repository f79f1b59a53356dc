"""Pods as they are created: the policy that holds is found, spot or on-demand is decided, and what to add is answered.

Called by serve.admission, and by the embedded cluster's store. Never a reason for a pod not to be created: whatever is
in doubt is answered without a patch, and counted. Pods made alike, as the replicas of one template are, get the same
patch: it is built once. So do pods that differ only in what no patch depends on, once each is read and found in order.
A reply depends on the mirror, on decisions in flight, and on the nonces it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from wukong.api.core import Pod, PodSpec, PriorityClass
from wukong.api.json_values import check_depth, load_json
from wukong.api.kinds import PRIORITY_CLASSES
from wukong.api.meta import controller_of
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan
from wukong.placement.matching import NO_POLICY, Match
from wukong.placement.pods import (
    MARK,
    CapacityCounts,
    build_pod,
    find_pod_problem,
    read_mark,
    shorten_pod,
    split,
)
from wukong.placement.pods.build import VERSION_KEYS
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
from wukong.semantics.label_syntax import is_label_key, is_label_value
from wukong.state import State

# The fields of a pod's spec that a patch may depend on: those that we know, but for how a pod is to be run.
READ_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(PodSpec)) - {
    "containers",
    "initContainers",
    "volumes",
}
_READ_LABELS = frozenset(key for keys in VERSION_KEYS.values() for key in keys)
_SOME_ANNOTATION = {"": ""}
_SOME_CONTAINERS = [{"name": "main", "image": "main"}]
_MOST_CACHED = 2048
_MOST_KEY_BYTES = 8 << 10  # a pod that says more is worked out each time
_NONCE_PATH = f"/metadata/annotations/{escape(NONCE)}"
_CROSS_NAMESPACE = "a ResourceQuota of the namespace counts pods with affinity across namespaces"
_encode = msgspec.json.Encoder().encode
_Key = tuple[Plan, str, bytes]  # the policy, the capacity that was decided, and what is known of the pod


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
        self._additions: dict[_Key, _Addition] = {}  # by outline
        self._by_what_counts: dict[_Key, _Addition] = {}  # by what shorten_pod leaves of one
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
        key = plan, capacity, _encode(_build_outline(request))
        addition = self._additions.get(key)
        if addition is None:
            addition = self._find_like(key[2], plan, capacity, request.namespace)
            _keep(self._additions, key, addition)
        return addition

    def _find_like(self, outline: bytes, plan: Plan, capacity: str, namespace: str) -> _Addition:
        """What is added to pods that differ in nothing that counts. Raises InputError for one nested too deeply."""
        check_depth(outline)
        pod = load_json(outline)
        if find_pod_problem(pod):
            return self._build_addition(pod, plan, capacity, namespace)
        key = plan, capacity, _encode(shorten_pod(pod, plan))
        addition = self._by_what_counts.get(key)
        if addition is None:
            addition = self._build_addition(pod, plan, capacity, namespace)
            _keep(self._by_what_counts, key, addition)
        return addition

    def _build_addition(self, before: Document, plan: Plan, capacity: str, namespace: str) -> _Addition:
        counted = self._quotas.of(namespace)
        change = build_pod(before, plan, capacity, self._classes, is_counted=counted.counts_class)
        if counted.has_cross_namespace and adds_cross_namespace_affinity(before, change.document):
            return _Addition(b"", skipped=(_CROSS_NAMESPACE,))
        operations = _encode(build_json_patch(before, change.document))[1:-1]  # without the brackets
        return _Addition(operations, change.capacity if operations else "", change.skipped)

    def _refresh(self) -> None:
        """What patches depend on besides pod and policy: where it changed, all are built anew."""
        version = self.state.versions[PRIORITY_CLASSES.group_kind]
        if self._quotas.refresh() or version != self._classes_version:
            self._classes_version, self._additions, self._by_what_counts = version, {}, {}
            self._classes = {
                entry.metadata.name: entry
                for entry in self.state.all(PriorityClass)
                if UNUSED not in entry.metadata.annotations  # about to be deleted: its pods would be refused
            }


def _keep(additions: dict[_Key, _Addition], key: _Key, addition: _Addition) -> None:
    """Bounded in number and size: when there are too many all are forgotten."""
    if len(key[2]) > _MOST_KEY_BYTES:
        return
    if len(additions) >= _MOST_CACHED:
        additions.clear()
    additions[key] = addition


def _build_outline(request: PodRequest) -> Document:
    """The pod as far as a patch depends on it: pods that have the same get the same.

    Of labels only those that tell a version count, and those for which the API server will refuse the pod; of
    annotations our mark, and whether there are others; of who owns it the kind. Whether its containers are valid is
    for the API server to say.
    """
    meta, owner = request.meta, controller_of(request.meta)
    metadata: Document = {"namespace": request.namespace}
    if labels := {key: value for key, value in meta.labels.items() if key in _READ_LABELS or not _is_label(key, value)}:
        metadata["labels"] = labels
    if meta.annotations:
        mark = meta.annotations.get(MARK)
        metadata["annotations"] = _SOME_ANNOTATION if mark is None else {MARK: mark}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner.kind, "name": "", "controller": True}]
    spec: Document = {name: value for name, value in request.spec.items() if name in READ_FIELDS}
    spec["containers"] = _SOME_CONTAINERS
    return {"metadata": metadata, "spec": spec}


def _is_label(key: str, value: str) -> bool:
    return is_label_key(key) and is_label_value(value)


def _describe_conflict(match: Match) -> tuple[str, ...]:
    if not match.others:
        return ()
    return (f"{match.plan.name} holds, the first by name; just as specific: {match.describe_others()}",)


def _warn(request: PodRequest, *texts: str) -> tuple[str, ...]:
    """For people: a controller that makes pods would write every warning into its log, for every pod."""
    if request.meta.owner_references:
        return ()
    return tuple(f"wukong: {text}"[:MOST_WARNING_CHARACTERS] for text in texts)
