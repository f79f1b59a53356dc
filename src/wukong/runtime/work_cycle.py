"""One key at work: what to do about it, and what becomes of it when that is done, failed or abandoned. Without I/O.

    take ─► Work ─► its actions one by one, or one action to look at again ─► finish │ fail │ abandon ─► dispatch

Driven by `loop`, over the network and several keys at a time, and by the embedded world's Process, at once. Both so
keep the same promises: an action whose outcome nobody knows is looked at before its key is decided again, what did not
happen is taken back, and losing an Event stops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wukong.actions import Action, Note, Outcome
from wukong.errors import OutcomeUnknown
from wukong.runtime.delivery import object_of
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.gate import ALLOW, Gate, Verdict
from wukong.runtime.pending_writes import WrittenVersion


class Work:
    """One key being worked on. Actions before `position` have been performed. If it `only_looks`, none is."""

    def __init__(self, item: Item, outcome: Outcome, *, only_looks: bool = False) -> None:
        self.item, self.outcome, self.position, self.only_looks = item, outcome, 0, only_looks
        self.written: list[WrittenVersion] = []

    def copy(self) -> Work:
        copy = Work(self.item, self.outcome, only_looks=self.only_looks)
        copy.position, copy.written = self.position, list(self.written)
        return copy

    @property
    def next_action(self) -> Action | None:
        """What to perform next, or to look at; None when all is done."""
        actions = self.outcome.actions
        return actions[self.position] if self.position < len(actions) else None

    def advance(self, written: WrittenVersion | None) -> None:
        """The action is done, or dispensable. `written` is the version it wrote, where that is known."""
        if written is not None:
            self.written.append(written)
        self.position += 1

    @property
    def performed(self) -> Sequence[Action]:
        """What is known to have happened."""
        return () if self.only_looks else self.outcome.actions[: self.position]

    def undone(self, *, is_unknown: bool) -> Sequence[Action]:
        """What has not happened; the action at hand is left out if nobody knows."""
        return () if self.only_looks else self.outcome.actions[self.position + is_unknown :]


class WorkCycle:
    def __init__(self, dispatch: Dispatch, gates: Mapping[str, Gate] | None = None) -> None:
        """`gates` are asked about the actions of the controllers they are named for."""
        self.dispatch, self.gates = dispatch, gates or {}
        # What nobody knows the outcome of. Before its key is decided again we look, for the watch may not show it yet.
        self._doubts: dict[Item, Action] = {}

    def fork(self, dispatch: Dispatch) -> WorkCycle:
        """An independent copy for a copy of the dispatch."""
        copies = {id(gate): gate.fork() for gate in self.gates.values()}
        copy = WorkCycle(dispatch, {name: copies[id(gate)] for name, gate in self.gates.items()})
        copy._doubts = dict(self._doubts)
        return copy

    def take(self, item: Item, now: float) -> Work:
        """What to do about an item that is due. Raises what its controller raises."""
        return self.take_doubt(item) or self.decide(item, now)

    def take_doubt(self, item: Item) -> Work | None:
        """The look that must come before the item is decided again, if there is one."""
        action = self._doubts.get(item)
        return Work(item, Outcome((action,)), only_looks=True) if action is not None else None

    def decide(self, item: Item, now: float) -> Work:
        return Work(item, self.dispatch.reconcile(item, now))

    def ask_gate(self, item: Item, action: Action, now: float) -> Verdict:
        """Whether the item's controller may do this now. Whoever is told no stops, and fails with `refusal_of` it."""
        gate = self.gates.get(item.controller)
        return ALLOW if gate is None else gate.check(action, self.dispatch.state, now)

    def finish(self, work: Work, now: float, decided_at: float | None = None) -> None:
        """All of it is done. After a look the item is decided at once, or when what was found shows in the state.

        When to look again counts from `decided_at`, or from now.
        """
        if work.only_looks:
            del self._doubts[work.item]
            self.dispatch.finish_look(work.item, now, work.written)
            return
        self.dispatch.confirm(work.performed)
        self.dispatch.finish(work.item, work.outcome, now, work.written, decided_at)

    def fail(self, work: Work, error: Exception, now: float, jitter: float) -> float:
        """The next action failed. Returns the seconds after which the item comes back."""
        is_unknown = isinstance(error, OutcomeUnknown)
        undone = work.undone(is_unknown=is_unknown)
        self.dispatch.confirm(work.performed)
        delay = self.dispatch.fail(work.item, error, now, jitter, undone, work.written)
        action = work.next_action
        if is_unknown and action is not None and object_of(action)[1].name:
            self._doubts[work.item] = action
        return delay

    def abandon(self, work: Work, now: float) -> None:
        """We stopped in the middle, for reasons of our own."""
        self.dispatch.confirm(work.performed)
        self.dispatch.abandon(work.item, now, work.undone(is_unknown=True))


def is_dispensable(action: Action) -> bool:
    """Whether the actions after it go on although it failed."""
    return isinstance(action, Note)
