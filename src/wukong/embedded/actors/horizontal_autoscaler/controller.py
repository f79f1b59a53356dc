"""The HorizontalPodAutoscaler controller: looks every 15 s, and scales its target to what the metrics ask for.

Follows kube-controller-manager 1.35 for metrics of resources, of pods and of containers; custom and external metrics
are not known here and say so in the condition ScalingActive. Without usage the bounds hold all the same: more replicas
than maxReplicas, or fewer than minReplicas, are brought within them; between them nothing changes.

    a look ─► scale of the target ─► each metric ─► the most replicas ─► stabilised, limited ─► Scale, status
                                       metrics.py,                        scaling_history.py
                                       replica_calculator.py

While nothing can change what it decides it does not look; what it would have recommended meanwhile is remembered when
something changes, and it looks when it would have looked. So a cluster with autoscalers comes to rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import ClassVar, NamedTuple

from wukong.actions import DONE, Action, Note, Outcome, Scale
from wukong.api.autoscaling import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
    ScalingRules,
)
from wukong.api.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    KINDS,
    POD_METRICS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    WORKLOAD_USAGES,
)
from wukong.api.meta import LabelSelector, Object
from wukong.api.resources import Key, Resource
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.horizontal_autoscaler import metrics
from wukong.embedded.actors.horizontal_autoscaler.metrics import Measured, Target
from wukong.embedded.actors.horizontal_autoscaler.scaling_history import Bounds, Recommendation, ScalingHistory
from wukong.embedded.actors.pods import MANAGER
from wukong.embedded.actors.status_patch import patch_status
from wukong.embedded.store.documents import format_time, value_at
from wukong.embedded.store.kinds import store_name
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import Watch

PERIOD_SECONDS = 15.0
USUAL_METRIC = MetricSpec(
    type="Resource",
    resource=ResourceMetricSource(name="cpu", target=MetricTarget(type="Utilization", average_utilization=80)),
)


class Memory(NamedTuple):
    """Of one autoscaler: when it last looked, whether it stopped looking, and its history. Lost with the controller."""

    uid: str
    looked_at: float
    is_resting: bool
    history: ScalingHistory

    def copy(self) -> Memory:
        return self._replace(history=self.history.fork())


class _Look(NamedTuple):
    """What comes of a look. `replicas` is None where nothing is scaled."""

    status: Document
    replicas: int | None = None
    reason: str = ""
    warning: tuple[str, str] | None = None
    is_settled: bool = True


def _keys_in_namespace(change: Change, state: State) -> Iterable[Key]:
    """The autoscalers that something in their namespace may concern."""
    keys = state.objects.get(HORIZONTAL_POD_AUTOSCALERS.group_kind)
    if not keys:
        return ()
    return sorted(key for key in keys if key.namespace == change.key.namespace)


class HorizontalAutoscalers:
    name = "horizontal-autoscaler"
    scaled_kinds: ClassVar[tuple[Resource, ...]] = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)
    watches = (
        Watch(HORIZONTAL_POD_AUTOSCALERS),
        *(Watch(resource, _keys_in_namespace, is_secondary=True) for resource in scaled_kinds),
        Watch(PODS, _keys_in_namespace, is_secondary=True),
        Watch(WORKLOAD_USAGES, _keys_in_namespace, is_secondary=True),
        Watch(POD_METRICS, _keys_in_namespace, is_secondary=True),
    )

    def __init__(self) -> None:
        self._memories: dict[Key, Memory] = {}

    def copy_memory(self, source: HorizontalAutoscalers, _: State) -> None:
        self._memories = {key: memory.copy() for key, memory in source._memories.items()}

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        autoscaler = state.get(HorizontalPodAutoscaler, key)
        if autoscaler is None:
            self._memories.pop(key, None)
            return DONE
        memory = self._memories.get(key)
        if memory is None or memory.uid != autoscaler.metadata.uid:
            self._memories[key] = Memory(autoscaler.metadata.uid, now, False, ScalingHistory())
            return Outcome(requeue_after=PERIOD_SECONDS)
        wait = _seconds_to_look(memory, now)
        if memory.is_resting:
            memory.history.repeat_last(now + wait - PERIOD_SECONDS)
        if wait > 0:
            self._memories[key] = memory._replace(is_resting=False, looked_at=now + wait - PERIOD_SECONDS)
            return Outcome(requeue_after=wait)
        return self._look(key, autoscaler, memory.history, state, now)

    def _look(
        self, key: Key, autoscaler: HorizontalPodAutoscaler, history: ScalingHistory, state: State, now: float
    ) -> Outcome:
        look = AutoscalerLook(autoscaler, history, state, now)
        result = look.run()
        actions: list[Action] = []
        if result.replicas is not None and look.target is not None:
            actions.append(Scale(look.resource, look.target.key, result.replicas, manager=MANAGER))
            text = f"New size: {result.replicas}; reason: {result.reason}"
            actions.append(_note(autoscaler, "SuccessfulRescale", text))
            history.note_scaling(look.target.replicas, result.replicas, now)
        before: Document = getattr(autoscaler, "document", {}).get("status") or {}
        if result.status != before:
            actions.append(patch_status(HORIZONTAL_POD_AUTOSCALERS, key, before, result.status))
            if result.warning is not None:  # the real one repeats it at every look, and the API server counts it
                actions.append(_note(autoscaler, *result.warning, is_warning=True))
        behavior = autoscaler.spec.behavior
        up, down = (behavior.scale_up, behavior.scale_down) if behavior is not None else (None, None)
        rests = not actions and result.is_settled and history.is_steady(up, down, now)
        self._memories[key] = Memory(autoscaler.metadata.uid, now, rests, history)
        return Outcome(tuple(actions), None if rests else PERIOD_SECONDS)


def _seconds_to_look(memory: Memory, now: float) -> float:
    """Seconds until the next look: every 15 s from the last, also where some were left out."""
    periods = max(1, ceil((now - memory.looked_at) / PERIOD_SECONDS - 1e-9))
    due = memory.looked_at + periods * PERIOD_SECONDS
    return max(0.0, round(due - now, 6))


def _note(autoscaler: Object, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return note_about(HORIZONTAL_POD_AUTOSCALERS, autoscaler, reason, text, is_warning=is_warning)


class AutoscalerLook:
    """One look at one autoscaler: `run` decides, and builds the status."""

    def __init__(self, autoscaler: HorizontalPodAutoscaler, history: ScalingHistory, state: State, now: float) -> None:
        self.autoscaler, self.history, self.state, self.now = autoscaler, history, state, now
        self.before: Document = getattr(autoscaler, "document", {}).get("status") or {}
        self.conditions: list[Document] = [dict(entry) for entry in self.before.get("conditions") or ()]
        self.problem, self.resource = "", DEPLOYMENTS
        self.target = self._find_target()

    def _find_target(self) -> Target | None:
        """What is scaled; None, and a condition that says why, where that cannot be read."""
        reference, namespace = self.autoscaler.spec.scale_target_ref, self.autoscaler.metadata.namespace
        entry = KINDS.of_document(reference.kind, reference.api_version)
        key = Key(namespace, reference.name)
        if entry is None or not entry.has_scale:
            group = reference.api_version.rpartition("/")[0]
            problem = f'no matches for kind "{reference.kind}" in group "{group}"'
            self._fail_to_get_scale(problem)
            return None
        self.resource = entry.resource
        workload = self.state.objects.get(entry.group_kind, {}).get(key)
        if workload is None:
            self._fail_to_get_scale(f'{store_name(entry.resource)} "{reference.name}" not found')
            return None
        text = "the HPA controller was able to get the target's current scale"
        self._set("AbleToScale", True, "SucceededGetScale", text)
        replicas = value_at(getattr(workload, "document", {}), "spec.replicas")
        selector = getattr(getattr(workload, "spec", None), "selector", None)
        pods = metrics.find_pods(self.state, namespace, selector) if isinstance(selector, LabelSelector) else []
        return Target(key, reference.kind, 1 if replicas is None else replicas, pods)

    def _fail_to_get_scale(self, problem: str) -> None:
        text = f"the HPA controller was unable to get the target's current scale: {problem}"
        self._set("AbleToScale", False, "FailedGetScale", text)
        self.problem = problem

    def run(self) -> _Look:
        spec, target = self.autoscaler.spec, self.target
        if target is None:
            status = {**self.before, "conditions": self.conditions}
            status.setdefault("desiredReplicas", 0)
            return _Look(status, warning=("FailedGetScale", self.problem))
        self.history.begin(target.replicas, self.now)
        least = 1 if spec.min_replicas is None else spec.min_replicas
        if target.replicas == 0 and least != 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._set("ScalingActive", False, "ScalingDisabled", text)
            return _Look(self._build_status(target.replicas, 0, []))
        if target.replicas > spec.max_replicas:
            return self._rescale(spec.max_replicas, "Current number of replicas above Spec.MaxReplicas", [])
        if target.replicas < least:
            return self._rescale(least, "Current number of replicas below Spec.MinReplicas", [])
        return self._follow_metrics(target, Bounds(least, spec.max_replicas))

    def _follow_metrics(self, target: Target, bounds: Bounds) -> _Look:
        measured = [metrics.measure(metric, self.autoscaler, target, self.state, self.now) for metric in self._metrics]
        failed = [entry for entry in measured if entry.reason]
        best = _find_most([entry for entry in measured if not entry.reason])
        statuses = [entry.status for entry in measured]
        is_settled = all(entry.is_settled for entry in measured)
        if best is None or (failed and best.replicas < target.replicas):
            first = failed[0]
            text = f"the HPA was unable to compute the replica count: {first.problem}"
            self._set("ScalingActive", False, first.reason, text)
            status = self._build_status(target.replicas, self.before.get("desiredReplicas", 0), statuses)
            count = f"{len(failed)} invalid out of {len(measured)}"
            error = f"invalid metrics ({count}), first error is: {first.error}"
            return _Look(status, warning=("FailedComputeMetricsReplicas", error), is_settled=is_settled)
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        self._set("ScalingActive", True, "ValidMetricFound", text)
        reason = "All metrics below target"
        if best.replicas > target.replicas:
            reason = f"{best.name} above target"
        sized = self._size(target.replicas, best.replicas, bounds)
        self._set("AbleToScale", True, *sized.able_to_scale)
        self._set("ScalingLimited", sized.is_limited, *sized.limited)
        is_settled = is_settled and not sized.is_for_now
        if sized.replicas == target.replicas:
            status = self._build_status(target.replicas, target.replicas, statuses)
            return _Look(status, is_settled=is_settled)
        return self._rescale(sized.replicas, reason, statuses)

    @property
    def _metrics(self) -> list[MetricSpec]:
        """A snapshot may show an autoscaler as another version of the API does, without what the server fills in."""
        return self.autoscaler.spec.metrics or [USUAL_METRIC]

    def _size(self, current: int, wanted: int, bounds: Bounds) -> Recommendation:
        behavior = self.autoscaler.spec.behavior
        if behavior is None:
            return self.history.size(current, wanted, bounds, self.now)
        up, down = behavior.scale_up or ScalingRules(), behavior.scale_down or ScalingRules()
        return self.history.size_by_behavior(current, wanted, bounds, up, down, self.now)

    def _rescale(self, replicas: int, reason: str, statuses: list[Document]) -> _Look:
        text = f"the HPA controller was able to update the target scale to {replicas}"
        self._set("AbleToScale", True, "SucceededRescale", text)
        assert self.target is not None
        status = self._build_status(self.target.replicas, replicas, statuses)
        status["lastScaleTime"] = format_time(self.now)
        return _Look(status, replicas, reason, is_settled=False)

    def _build_status(self, current: int, desired: int, statuses: list[Document]) -> Document:
        status: Document = {"desiredReplicas": desired, "conditions": self.conditions}
        if current:
            status["currentReplicas"] = current
        if statuses:
            status["currentMetrics"] = statuses
        if "lastScaleTime" in self.before:
            status["lastScaleTime"] = self.before["lastScaleTime"]
        return status

    def _set(self, type_: str, is_so: bool, reason: str, message: str) -> None:
        text, new = str(is_so), {"type": type_, "status": str(is_so), "reason": reason, "message": message}
        for index, entry in enumerate(self.conditions):
            if entry["type"] == type_:
                since = entry.get("lastTransitionTime") if entry["status"] == text else None
                self.conditions[index] = {**new, "lastTransitionTime": since or format_time(self.now)}
                return
        self.conditions.append({**new, "lastTransitionTime": format_time(self.now)})


def _find_most(measured: list[Measured]) -> Measured | None:
    """The first of those that ask for the most."""
    most: Measured | None = None
    for entry in measured:
        if most is None or most.replicas == 0 or entry.replicas > most.replicas:
            most = entry
    return most
