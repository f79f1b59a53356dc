"""The rollout controller: one ReplicaSet for each version of a Rollout, and the Services that select one of them.

Keys are Rollouts. One look reads versions and Services (versions.py), decides by the strategy (blue_green.py,
canary.py), writes the status, and then what follows from it (writes.py). Nothing is remembered but in the status and in
what is written on ReplicaSets and Services; how often a status was written (status_limit.py) may be lost.

    not accepted, or unreadable ─► nothing of what runs is changed; the condition Accepted says why
    being deleted               ─► nothing: the garbage collector deletes what it owns
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Action, Note, Outcome, Patch
from wukong.api.apps import PodDisruptionBudget, ReplicaSet
from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, ROLLOUTS, SERVICES
from wukong.api.resources import Key, key_of
from wukong.api.rollout import Rollout, RolloutStatus, blue_green_of, services_of
from wukong.controllers.rollout.blue_green import decide_blue_green
from wukong.controllers.rollout.canary import decide_canary
from wukong.controllers.rollout.decision import Decision, find_soonest
from wukong.controllers.rollout.status import Obstacle, build_refusal, build_status, format_status
from wukong.controllers.rollout.status_limit import StatusLimit
from wukong.controllers.rollout.versions import (
    Look,
    is_owned,
    read_look,
    rollouts_of_pod,
    rollouts_of_replica_set,
    rollouts_of_service,
)
from wukong.controllers.rollout.writes import list_writes, name_replica_set
from wukong.placement.rollout import find_rollout_problems
from wukong.ports import PatchBody
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State
from wukong.state.controller import PodRight, Watch, no_keys

OBSTACLE_SECONDS = 15.0
_PERMANENT = ("Invalid", "Denied", "GateRefusal")  # errors that are told when they first come
_EVENTS = {  # phase → reason of the Event, and whether it is a warning
    "Healthy": ("RolloutCompleted", False),
    "Paused": ("RolloutPaused", False),
    "Aborted": ("RolloutAborted", True),
    "Degraded": ("RolloutDegraded", True),
    "NotAccepted": ("NotAccepted", True),
}


class RolloutController:
    name = "rollout"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_UNPLACED})
    watches = (
        Watch(ROLLOUTS),
        Watch(REPLICA_SETS, rollouts_of_replica_set, is_secondary=True),
        Watch(PODS, rollouts_of_pod, is_secondary=True),
        Watch(SERVICES, rollouts_of_service, is_secondary=True),
        Watch(POD_DISRUPTION_BUDGETS, no_keys),
    )

    def __init__(self) -> None:
        self._status_limit = StatusLimit()

    def copy_memory(self, source: RolloutController, _: State) -> None:
        self._status_limit.copy_memory(source._status_limit)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        rollout = state.get(Rollout, key)
        if rollout is None:
            self._status_limit.forget(key)
            return _report_unreadable(key, state, now)
        if rollout.metadata.deletion_timestamp is not None:
            return DONE
        if problems := [*find_rollout_problems(rollout), *_find_shared_services(rollout, state)]:
            return Outcome(tuple(_tell(rollout, build_refusal(rollout, "Invalid", "\n".join(problems), now))))
        return self._look(rollout, state, now)

    def _look(self, rollout: Rollout, state: State, now: float) -> Outcome:
        look = read_look(rollout, state, now)
        decision = _decide(look, state)
        taken = _find_taken_name(look, state)
        obstacle = taken or _find_missing_service(look) or self._find_failure(key_of(rollout), state)
        report = build_status(look, decision, obstacle)
        told = _tell(rollout, report.status)
        status_wait = None
        if told:
            status_wait = self._status_limit.find_wait(key_of(rollout), rollout.status, report.status, now)
        writes = [] if taken is not None else list_writes(look, decision)
        wait = find_soonest(
            decision.again_after,
            report.deadline_in,
            status_wait,
            OBSTACLE_SECONDS if obstacle is not None else None,
        )
        return Outcome((*(told if status_wait is None else ()), *writes), requeue_after=wait)

    def _find_failure(self, key: Key, state: State) -> Obstacle | None:
        """What the API server last refused, unless it may pass by itself."""
        attempt = state.attempts.get(self.name, key)
        if attempt is None or (attempt.count < 3 and attempt.error.partition(":")[0] not in _PERMANENT):
            return None
        return Obstacle("WriteFailed", f"What should be written is refused: {attempt.error}")


def _decide(look: Look, state: State) -> Decision:
    blue_green, canary = blue_green_of(look.rollout), look.rollout.spec.strategy.canary
    if blue_green is not None:
        return decide_blue_green(look, blue_green)
    assert canary is not None, "a Rollout without a strategy is not accepted"
    return decide_canary(look, canary, _find_budget_floor(look, state))


def _find_budget_floor(look: Look, state: State) -> int:
    """The most healthy pods that a disruption budget over its pods asks for."""
    labels = {
        label: value
        for version in look.versions.values()
        for pod in version.pods[:1]
        for label, value in pod.metadata.labels.items()
    }
    return max(
        (
            budget.status.desired_healthy
            for key, budget in state.of(PodDisruptionBudget).items()
            if key.namespace == look.rollout.metadata.namespace
            and isinstance(budget, PodDisruptionBudget)
            and selects(compile_selector(budget.spec.selector), labels)
        ),
        default=0,
    )


def _find_shared_services(rollout: Rollout, state: State) -> list[str]:
    """Services that an older Rollout names, too: two cannot set one selector."""
    own, meta = set(services_of(rollout)), rollout.metadata
    age = (meta.creation_timestamp or "", meta.name)
    problems = []
    for key, other in sorted(state.of(Rollout).items()):
        if not isinstance(other, Rollout) or key.namespace != meta.namespace or other.metadata.uid == meta.uid:
            continue
        shared = sorted(own.intersection(services_of(other)))
        if shared and (other.metadata.creation_timestamp or "", key.name) < age:
            problems.append(f"$.spec.strategy: Service {shared[0]} belongs to Rollout {key.name}. Name another one.")
    return problems


def _find_taken_name(look: Look, state: State) -> Obstacle | None:
    if look.current.replica_set is not None:
        return None
    name = name_replica_set(look.rollout, look.current.hash)
    present = state.get(ReplicaSet, Key(look.rollout.metadata.namespace, name))
    if present is None or is_owned(present, look.rollout):
        return None
    return Obstacle("NameTaken", f"ReplicaSet {name} is there and belongs to somebody else, or is being deleted.")


def _find_missing_service(look: Look) -> Obstacle | None:
    missing = [name for name in services_of(look.rollout) if name not in look.services]
    return Obstacle("ServiceMissing", f"Service {missing[0]} is missing: create it.") if missing else None


def _tell(rollout: Rollout, status: RolloutStatus) -> list[Action]:
    """Write the status unless it stands there, and Events about what turned."""
    if format_status(rollout.status) == format_status(status):
        return []
    body = {"metadata": {"resourceVersion": rollout.metadata.resource_version}, "status": format_status(status)}
    patch = Patch(ROLLOUTS, key_of(rollout), PatchBody("merge", body), subresource="status")
    return [patch, *_list_events(rollout, status)]


def _list_events(rollout: Rollout, status: RolloutStatus) -> list[Action]:
    before = rollout.status
    notes: list[Action] = []
    if status.revision != before.revision:
        notes.append(_note(rollout, "NewRevision", f"Revision {status.revision} is {status.current}."))
    if status.stable and status.stable != before.stable:
        notes.append(_note(rollout, "Promoted", f"{status.stable} gets the traffic now."))
    known = {condition.type: condition.reason for condition in before.conditions}
    for condition in status.conditions:
        if condition.reason == "Yielded" != known.get(condition.type) and condition.type == "Separated":
            notes.append(_note(rollout, "Yielded", condition.message, is_warning=True))
    if status.phase != before.phase and status.phase in _EVENTS:
        reason, is_warning = _EVENTS[status.phase]
        notes.append(_note(rollout, reason, status.message, is_warning=is_warning))
    return notes


def _note(rollout: Rollout, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return Note(ROLLOUTS, key_of(rollout), reason, text[:1024], uid=rollout.metadata.uid, is_warning=is_warning)


def _report_unreadable(key: Key, state: State, now: float) -> Outcome:
    """Say on a Rollout that cannot be read what is wrong with it. Everything else it says stays as it was."""
    unreadable = state.get_unreadable(Rollout, key)
    if unreadable is None or not isinstance(unreadable.remains, Rollout):
        return DONE
    rollout = unreadable.remains
    status = build_refusal(rollout, "Unreadable", unreadable.problem, now)
    names = ("phase", "message", "conditions", "observedGeneration")
    told, known = ({name: format_status(one)[name] for name in names} for one in (status, rollout.status))
    if told == known:
        return DONE
    body = {"metadata": {"resourceVersion": rollout.metadata.resource_version}, "status": told}
    return Outcome((Patch(ROLLOUTS, key, PatchBody("merge", body), subresource="status"),))
