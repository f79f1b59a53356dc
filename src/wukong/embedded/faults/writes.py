"""The way of a process to the server with faults in it: refusals, lost requests and answers, crashes around writes.

A process has one instead of the plain way (process.Way). What the process does about a fault is its own business, by
the same code as in live mode; here the fault only happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wukong.actions import Action, Bind, Create, Note, Patch, Scale
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
        self.item: Item | None = None
        self.done = 0  # writes of this decision
        self._port = RetryingTransport(self._do, self._look)

    def begin(self, item: Item, actions: Sequence[Action]) -> None:
        self.item, self.done = item, 0
        self.faults.decided(self.process, item)

    def perform(self, action: Action) -> WrittenVersion | None:
        if isinstance(action, Note):
            return None
        try:
            written = self._port.perform(action)
        finally:  # it takes its time: two who quarrel must not keep the clock from moving until they hear of the rest
            self.faults.world.clock.move_to(self.faults.world.clock.now() + WRITE_SECONDS)
        self.done += 1
        assert self.item is not None
        self.faults.wrote(self.process, self.item, written)
        return written

    def look_again(self, action: Action) -> WrittenVersion | None:
        return self._port.look_again(action)

    def _look(self, resource: Resource, key: Key) -> Document:
        self.faults.ledger.saw(("look", self.process.name, self.item))
        return self.server.get(resource, key)

    def _do(self, action: Write) -> WrittenVersion | None:
        name = self.faults.drawn("write", lambda each: self._suits(each, action))
        if name is None:
            written = perform(self.server, action)
            self.faults.ledger.saw(("done", self.process.name, self.item))
            return written
        self.faults.ledger.inject(name)
        if name in ("lost-answer", "crash-after"):
            perform(self.server, action)
        self.faults.ledger.expect((_sign(name, action), self.process.name, self.item), name)
        if name.startswith("crash"):
            raise Crashed(0.5 + _LONGEST_DOWN * self.faults.share("down"))
        raise _refusal(name, self.faults)

    def _suits(self, name: str, action: Write) -> bool:
        match name:
            case "conflict":
                return isinstance(action, CHANGES)
            case "quota":
                return isinstance(action, Create) and action.resource.kind == "Pod"
            case "crash-midway":
                return self.done > 0
        return True


def _sign(name: str, action: Write) -> str:
    """What shows that the fault made a difference: a lost answer is looked for, where the object has a name."""
    if name.startswith("lost") and object_of(action)[1].name:
        return "look" if name == "lost-answer" else "done"
    return "decided"


def _refusal(name: str, faults: Faults) -> ClusterError:
    match name:
        case "conflict":
            return Conflict("the object has been modified (injected)", reason="Conflict")
        case "throttled":
            seconds = 1.0 + int(_LONGEST_RETRY * faults.share("retry"))
            return TooManyRequests("too many requests (injected)", reason="TooManyRequests", retry_after=seconds)
        case "failed":
            code = 500 if faults.share("code") < 0.5 else 503
            return ServerFailed("etcdserver: leader changed (injected)", code=code)
        case "quota":
            return Denied("pods is forbidden: exceeded quota (injected)", reason="Forbidden")
    return OutcomeUnknown("connection lost (injected)")
