"""Chooses a node for one pod, or the pods to preempt, with the engine as kube-scheduler would.

Called by controller.py. It adds to the engine what depends on more than the pod's template: the node a pod is
nominated to, the room reserved for other nominated pods, and an extender. It changes nothing.

An extender that refuses no feasible node only adds points to what the engine has worked out, and the engine keeps that
current from pod to pod. Where it refuses some, the scores of the others may change: then a profile of which it is a
part decides, on a copy of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.api.resources import Key
from wukong.engine import Decision, Preemption, Scheduler, Snapshot, Ties
from wukong.engine.arrays import INFEASIBLE, Ints
from wukong.engine.decide import decide
from wukong.engine.view import View
from wukong.errors import InputError
from wukong.state import State

PREEMPTION_UNDER_WAY = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = ("DisruptionTarget", "True", "PreemptionByScheduler")

Notes = tuple[Note, ...]
# Returns the same scheduler with an extender in its profile, for this pod at this time, and a function that reads the
# extender's notes from a view.
Extend = Callable[[Scheduler, Pod, float], tuple[Scheduler, Callable[[View], Notes]]]
# Returns what an extender adds to the total of each node of a view, for this pod at this time, and its notes; None if
# it refuses one of the feasible nodes.
FindPoints = Callable[[View, Pod, float], tuple[Ints, Notes] | None]
Nominations = Mapping[Key, str]  # pod → node


class Extension(NamedTuple):
    """What an extender of the same process adds to decisions. `announce` hears of each pod before it is decided."""

    extend: Extend
    find_points: FindPoints = lambda view, pod, now: None
    announce: Callable[[Pod], None] = lambda pod: None  # may raise InputError


class Choice(msgspec.Struct, frozen=True):
    """`node`, or why there is none: a message and the plugins that refused, or an error."""

    node: str = ""
    message: str = ""
    refused_by: frozenset[str] = frozenset()
    preemption: Preemption | None = None
    keeps_nomination: bool = False  # its victims are still leaving
    error: str = ""
    notes: Notes = ()  # the Events an extender wants recorded


class Chooser:
    """Chooses by one profile, and by an extender if there is one."""

    def __init__(self, profile: Profile, ties: Ties, extension: Extension | None) -> None:
        self.profile, self.ties, self.extension = profile, ties, extension
        # Made once: the engine caches compiled pods by the identity of the profile.
        self._profile_without_preemption = msgspec.structs.replace(profile, has_preemption=False)

    def choose(self, pod: Pod, state: State, nominated: Nominations, now: float) -> Choice:
        """Return the node for a pod, or why there is none. `nominated` has the node of every nominated pod."""
        nominated_node = nominated.get(Key(pod.metadata.namespace, pod.metadata.name), "")
        must_wait = bool(nominated_node) and _has_terminating_victim(pod, nominated_node, state)
        reserved = _find_reserved_pods(pod, state, nominated)
        # Reservations are for this pod only: use a copy.
        snapshot = _reserve(state.snapshot, reserved) if reserved else state.snapshot
        try:
            if self.extension is not None:
                self.extension.announce(pod)
                choice = self._choose_by_points(self.extension, pod, nominated_node, snapshot, now)
                if choice is not None:
                    return choice
                # An extender's answer holds for this moment only, and the snapshot keeps what is compiled: use a copy.
                snapshot = snapshot if reserved else snapshot.fork()
            return self._choose(pod, nominated_node, snapshot, must_wait, now)
        except InputError as error:  # what no API server lets through
            return Choice(error=str(error))

    def _choose_by_points(
        self, extension: Extension, pod: Pod, nominated_node: str, snapshot: Snapshot, now: float
    ) -> Choice | None:
        """Return the choice if the extender refuses no feasible node, and there is one."""
        view = Scheduler(snapshot, self.profile, ties=self.ties).view_of(pod)
        view.sync()
        if not view.feasible.any():
            return None
        answer = extension.find_points(view, pod, now)
        if answer is None:
            return None
        points, notes = answer
        total = np.where(view.feasible, view.total + points, INFEASIBLE)
        node = self._pick(view, nominated_node, total)
        return Choice(node=node, notes=notes) if node else None

    def _choose(self, pod: Pod, nominated_node: str, snapshot: Snapshot, must_wait: bool, now: float) -> Choice:
        view, notes = self._compile_view(pod, snapshot, self.profile, now)
        view.sync()
        node = self._pick(view, nominated_node, view.total)
        if node:
            return Choice(node=node, notes=notes)
        decision = decide(view, self.ties)
        refusal = decision.refusals.get(nominated_node)
        if must_wait and refusal is not None and not refusal.is_final:
            decision = decide(self._compile_view(pod, snapshot, self._profile_without_preemption, now)[0])
            message = f"{_add_separator(decision.message)}preemption: {PREEMPTION_UNDER_WAY}"
            return _build_choice(decision, message, notes, is_waiting=True)
        return _build_choice(decision, decision.message, notes)

    def _pick(self, view: View, nominated_node: str, total: Ints) -> str:
        """Return the nominated node if it is feasible, else one of the best; "" if there is none, or scoring failed."""
        row = view.snapshot.row_of.get(nominated_node)
        if row is not None and view.feasible[row]:
            return nominated_node
        if view.scoring_error and np.count_nonzero(view.feasible) > 1:
            return ""
        best = self.ties.pick(total)
        return "" if best is None else view.snapshot.rows[best].name

    def _compile_view(self, pod: Pod, snapshot: Snapshot, profile: Profile, now: float) -> tuple[View, Notes]:
        scheduler = Scheduler(snapshot, profile, ties=self.ties)
        if self.extension is None:
            return scheduler.view_of(pod), ()
        extended, notes_of = self.extension.extend(scheduler, pod, now)
        view = extended.view_of(pod)
        return view, notes_of(view)


def _build_choice(decision: Decision, message: str, notes: Notes, *, is_waiting: bool = False) -> Choice:
    refused_by = frozenset(refusal.plugin for refusal in decision.refusals.values())
    return Choice("", message, refused_by, decision.preemption, is_waiting, decision.error, notes)


def _add_separator(message: str) -> str:
    """Return the message with what separates it from the sentence on preemption."""
    return f"{message} " if message.endswith(".") else f"{message}, "


def _find_reserved_pods(pod: Pod, state: State, nominated: Nominations) -> dict[str, tuple[Pod, str]]:
    """Return the other nominated pods whose room this one may not take, by key, each with its node."""
    reserved: dict[str, tuple[Pod, str]] = {}
    placed, rows = state.snapshot.pods, state.snapshot.row_of
    for key, node in sorted(nominated.items()):
        nominated_pod = state.get(Pod, key)
        if nominated_pod is None or nominated_pod.key == pod.key or nominated_pod.key in placed or node not in rows:
            continue
        if (nominated_pod.spec.priority or 0) >= (pod.spec.priority or 0):
            reserved[nominated_pod.key] = nominated_pod, node
    return reserved


def _reserve(snapshot: Snapshot, reserved: Mapping[str, tuple[Pod, str]]) -> Snapshot:
    """Return a copy of the snapshot in which these pods are placed."""
    copy = snapshot.fork()
    for key, (pod, node) in reserved.items():
        copy.assume(key, pod, node)
    return copy


def _has_terminating_victim(pod: Pod, node: str, state: State) -> bool:
    """Tell whether a pod preempted from this node is still terminating."""
    return any(
        placed_pod.is_terminating
        and (placed_pod.spec.priority or 0) < (pod.spec.priority or 0)
        and any(
            (condition.type, condition.status, condition.reason) == PREEMPTED
            for condition in placed_pod.status.conditions
        )
        for placed_pod in state.pods_on(node)
    )
