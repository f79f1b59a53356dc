"""The transport of a process with faults in it: refusals, lost requests and answers, crashes around writes.

A process has one instead of the plain transport (world.DirectTransport). What the process does about a fault is its own
business, by the same code as in live mode; here the fault only happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wukong.actions import Action, Bind, Create, Note, Patch, Record, Scale
from wukong.api.kinds import PODS
from wukong.api.resources import Key, Resource
from wukong.embedded.world.process import Crashed, Process
from wukong.embedded.world.transport import RetryingTransport, perform
from wukong.errors import ClusterError, Conflict, Denied, OutcomeUnknown, ServerFailed, TooManyRequests
from wukong.ports import Document
from wukong.runtime.delivery import object_of
from wukong.runtime.dispatch import Item
from wukong.runtime.effect_check import Write
from wukong.runtime.pending_writes import WrittenVersion

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

CHANGES = (Patch, Bind, Scale)
WRITE_SECONDS = 0.005
_LONGEST_DOWN, _LONGEST_RETRY = 10.0, 5.0


class FaultyTransport:
    def __init__(self, faults: Faults, process: Process) -> None:
        self.faults, self.process, self.server = faults, process, faults.world.server
        self._transport = RetryingTransport(self._write, self._read)

    @property
    def item(self) -> Item:
        """The item whose actions are being performed."""
        assert self.process.acting is not None
        return self.process.acting

    def perform(self, action: Action) -> WrittenVersion | None:
        if isinstance(action, Note):
            return None
        try:
            written = self._transport.perform(action)
        finally:
            if self.process.workers is None:  # two that undo each other's writes must not keep the clock from moving
                self.faults.world.clock.move_to(self.faults.world.clock.now() + WRITE_SECONDS)
        self.faults.observe_write(self.process, self.item, written)
        return written

    def look_again(self, action: Action) -> WrittenVersion | None:
        return self._transport.look_again(action)

    def _read(self, resource: Resource, key: Key) -> Document:
        self.faults.counts.observe(("look", self.process.name, self.item))
        return self.server.get(resource, key)

    def _write(self, action: Write | Record) -> WrittenVersion | None:
        if isinstance(action, Record):
            self.faults.ledger.strike(self.process.name, self.item, action)
        fault = self.faults.draw_fault("write", lambda name: self._can_strike(name, action))
        if fault is None:
            written = perform(self.server, action)
            self.faults.counts.observe(("done", self.process.name, self.item))
            return written
        self.faults.counts.count_injected(fault)
        if fault in ("lost-answer", "crash-after"):
            perform(self.server, action)
        self.faults.counts.expect((_sign_of_effect(fault, action), self.process.name, self.item), fault)
        if fault.startswith("crash"):
            raise Crashed(0.5 + _LONGEST_DOWN * self.faults.draw_fraction("down"))
        raise _build_refusal(fault, self.faults)

    def _can_strike(self, fault: str, action: Write | Record) -> bool:
        match fault:
            case "conflict":
                return isinstance(action, CHANGES)
            case "quota":
                return isinstance(action, Create) and action.resource == PODS
            case "crash-midway":
                work = self.process.acting_work
                return work is not None and any(not isinstance(done, Note) for done in work.performed)
        return True


def _sign_of_effect(fault: str, action: Write | Record) -> str:
    """What shows that the fault made a difference: a lost answer is looked for, where the object has a name."""
    if isinstance(action, Record):  # written again when its key is decided again
        return "decided"
    if fault.startswith("lost") and object_of(action)[1].name:
        return "look" if fault == "lost-answer" else "done"
    return "decided"


def _build_refusal(fault: str, faults: Faults) -> ClusterError:
    match fault:
        case "conflict":
            return Conflict("the object has been modified (injected)", reason="Conflict")
        case "throttled":
            seconds = 1.0 + int(_LONGEST_RETRY * faults.draw_fraction("retry"))
            return TooManyRequests("too many requests (injected)", reason="TooManyRequests", retry_after=seconds)
        case "failed":
            code = 500 if faults.draw_fraction("code") < 0.5 else 503
            return ServerFailed("etcdserver: leader changed (injected)", code=code)
        case "quota":
            return Denied("pods is forbidden: exceeded quota (injected)", reason="Forbidden")
    return OutcomeUnknown("connection lost (injected)")
