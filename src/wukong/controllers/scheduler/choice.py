"""Where one pod goes, if anywhere, and whom it would drive out: the engine asked as kube-scheduler would be.

Called by controllers.scheduler. It adds to the engine what depends on more than the pod's template: the node a pod is
nominated to, the room reserved for other nominated pods, and an extender. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.api.resources import Key
from wukong.engine import Decision, Preemption, Scheduler, Snapshot, Ties
from wukong.engine.decide import decide
from wukong.engine.view import View
from wukong.errors import InputError
from wukong.state import State

PREEMPTION_UNDER_WAY = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = ("DisruptionTarget", "True", "PreemptionByScheduler")

EventWriter = tuple[Note, ...]
# Gives the same scheduler with an extender in its profile, asked about this pod at this time, and what is to be told.
Extend = Callable[[Scheduler, Pod, float], tuple[Scheduler, Callable[[View], EventWriter]]]
Nominated = Mapping[Key, str]  # pod → node


class Choice(msgspec.Struct, frozen=True):
    """`node`, or why there is none: a message and the plugins that refused, or an error."""

    node: str = ""
    message: str = ""
    refused_by: frozenset[str] = frozenset()
    preemption: Preemption | None = None
    keeps_nomination: bool = False  # its victims are still leaving
    error: str = ""
    notes: EventWriter = ()  # what an extender wants told


class Chooser:
    def __init__(self, profile: Profile, ties: Ties, extend: Extend | None) -> None:
        self.profile, self.ties, self.extend = profile, ties, extend
        # Kept as long as we are: the engine tells compiled pods apart by the profile itself.
        self._peaceful = msgspec.structs.replace(profile, has_preemption=False)

    def choose(self, pod: Pod, state: State, nominated: Nominated, now: float) -> Choice:
        """`nominated` are all pods to which room is promised, this one too, as far as they wait for it."""
        own = nominated.get(Key(pod.metadata.namespace, pod.metadata.name), "")
        must_wait = bool(own) and _has_leaving_victim(pod, own, state)
        reserved = _reserved(pod, state, nominated)
        # What an extender said holds for this moment only, and reservations for this pod only: on a copy.
        snapshot = _with(state.snapshot, reserved) if reserved or self.extend else state.snapshot
        try:
            return self._choose(pod, own, snapshot, must_wait, now)
        except InputError as error:  # what no API server lets through
            return Choice(error=str(error))

    def _choose(self, pod: Pod, own: str, snapshot: Snapshot, must_wait: bool, now: float) -> Choice:
        view, notes = self._view(pod, snapshot, self.profile, now)
        view.sync()
        node = self._pick(view, own)
        if node:
            return Choice(node=node, notes=notes)
        decision = decide(view)
        refusal = decision.refusals.get(own)
        if must_wait and refusal is not None and not refusal.is_final:
            decision = decide(self._view(pod, snapshot, self._peaceful, now)[0])
            message = f"{_joined(decision.message)}preemption: {PREEMPTION_UNDER_WAY}"
            return _read(decision, message, notes, is_waiting=True)
        return _read(decision, decision.message, notes)

    def _pick(self, view: View, own: str) -> str:
        """The node the pod is nominated to, if it suits; else one of the best; "" if there is none, or no telling."""
        row = view.snapshot.row_of.get(own)
        if row is not None and view.feasible[row]:
            return own
        if view.scoring_error and np.count_nonzero(view.feasible) > 1:
            return ""
        best = self.ties.pick(view.total)
        return "" if best is None else view.snapshot.rows[best].name

    def _view(self, pod: Pod, snapshot: Snapshot, profile: Profile, now: float) -> tuple[View, EventWriter]:
        scheduler = Scheduler(snapshot, profile, ties=self.ties)
        if self.extend is None:
            return scheduler.view_of(pod), ()
        extended, notes_of = self.extend(scheduler, pod, now)
        view = extended.view_of(pod)
        return view, notes_of(view)


def _read(decision: Decision, message: str, notes: EventWriter, *, is_waiting: bool = False) -> Choice:
    refused_by = frozenset(refusal.plugin for refusal in decision.refusals.values())
    return Choice("", message, refused_by, decision.preemption, is_waiting, decision.error, notes)


def _joined(message: str) -> str:
    """The message up to where preemption has its say."""
    return f"{message} " if message.endswith(".") else f"{message}, "


def _reserved(pod: Pod, state: State, nominated: Nominated) -> dict[str, tuple[Pod, str]]:
    """The other pods to which room is promised, if this one may not take it from them."""
    found: dict[str, tuple[Pod, str]] = {}
    placed, rows = state.snapshot.pods, state.snapshot.row_of
    for key, node in sorted(nominated.items()):
        other = state.get(Pod, key)
        if other is None or other.key == pod.key or other.key in placed or node not in rows:
            continue
        if (other.spec.priority or 0) >= (pod.spec.priority or 0):
            found[other.key] = other, node
    return found


def _with(snapshot: Snapshot, reserved: Mapping[str, tuple[Pod, str]]) -> Snapshot:
    copy = snapshot.fork()
    for key, (pod, node) in reserved.items():
        copy.assume(key, pod, node)
    return copy


def _has_leaving_victim(pod: Pod, node: str, state: State) -> bool:
    """Whether a pod preempted from this node is still on its way out."""
    return any(
        other.is_terminating
        and (other.spec.priority or 0) < (pod.spec.priority or 0)
        and any((each.type, each.status, each.reason) == PREEMPTED for each in other.status.conditions)
        for other in state.pods_on(node)
    )
