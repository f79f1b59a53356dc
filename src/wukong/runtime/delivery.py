"""How an action is carried out when answers get lost: do it, look if nobody answered, repeat what did not happen.

    DO ─► answered ─► done            LOOK ─► it has happened ─► done
     ▲ └► refused ─► raised            │
     │ └► no answer ─► LOOK ───────────┘
     └──── it has not, TRIES times ────┘

Without I/O: a Delivery says what to do next, and its driver does it and reports what came of it. Driven by `Performer`
(a cluster over the network) and by the embedded world's transport, so that both keep the same promise.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import Enum

from wukong.actions import Action, Bind, Create, Evict, Note, Patch
from wukong.api.kinds import PODS
from wukong.api.resources import Key, Resource
from wukong.errors import AlreadyExists, ClusterError, Conflict, NotFound, OutcomeUnknown
from wukong.ports import Document
from wukong.runtime.effect_check import Write, has_happened
from wukong.runtime.pending_writes import WrittenVersion

TRIES = 3


class Step(Enum):
    DO = "do"  # perform the action; the answer is the version that was written, where the API server says
    LOOK = "look"  # read the object at `place`


DO, LOOK = Step.DO, Step.LOOK
Answer = WrittenVersion | Document | None
Steps = Generator[Step, Answer, WrittenVersion | None]


class Delivery:
    """One action on its way. While there is a `step`, take it, then call `answer` or `fail`.

    In the end `written` is the version it wrote, where that is known. What ends it otherwise is raised by `fail`:
    the API server's refusal, or OutcomeUnknown.
    """

    def __init__(self, action: Write, *, only_looks: bool = False) -> None:
        """With `only_looks` the action is never performed: `written` is its version if it has happened before."""
        self.action = action
        self.written: WrittenVersion | None = None
        self._steps = _look_again(action) if only_looks else _deliver(action)
        self._advance(lambda: next(self._steps))

    @property
    def place(self) -> tuple[Resource, Key]:
        """Where to look."""
        return locate_object(self.action)

    def answer(self, answer: Answer) -> None:
        self._advance(lambda: self._steps.send(answer))

    def fail(self, error: ClusterError) -> None:
        if self.step is DO:
            self._advance(lambda: self._steps.throw(error))
        elif isinstance(error, NotFound):
            self.answer(None)
        else:
            unknown = OutcomeUnknown(
                f"no answer, and none when looking again ({error}): {describe_action(self.action)}"
            )
            unknown.__cause__ = error
            self._advance(lambda: self._steps.throw(unknown))

    def _advance(self, move: Callable[[], Step]) -> None:
        self.step: Step | None = None
        try:
            self.step = move()
        except StopIteration as end:
            self.written = end.value


def _deliver(action: Write) -> Steps:
    is_in_doubt = False
    for _ in range(TRIES):
        try:
            answer = yield DO
            return answer if isinstance(answer, WrittenVersion) else None
        except OutcomeUnknown:
            is_in_doubt = True
            document = yield from _look(action)
            if has_happened(action, document):
                return version_to_await(action, document)
        except (AlreadyExists, Conflict):
            # After a lost answer this may be our own write: the first request arrived late. A binding may also be that
            # of an earlier process of ours, which ended before it was answered.
            is_maybe_ours = is_in_doubt or isinstance(action, Bind)
            if is_maybe_ours and has_happened(action, document := (yield from _look(action))):
                return version_to_await(action, document)
            raise
    raise OutcomeUnknown(f"no answer {TRIES} times to: {describe_action(action)}")


def _look_again(action: Write) -> Steps:
    document = yield from _look(action)
    return version_to_await(action, document) if has_happened(action, document) else None


def _look(action: Write) -> Generator[Step, Answer, Document | None]:
    locate_object(action)  # raises if nobody knows where
    answer = yield LOOK
    return answer if isinstance(answer, dict) else None


def object_of(action: Action) -> tuple[Resource, Key]:
    """The object an action is about. A name still to be generated is ""."""
    if isinstance(action, Create):
        meta = action.body.get("metadata", {})
        return action.resource, Key(action.namespace or meta.get("namespace", ""), meta.get("name", ""))
    if isinstance(action, Evict | Bind):
        return PODS, action.key
    if isinstance(action, Note):
        return action.about, action.key
    return action.resource, action.key


def locate_object(action: Write) -> tuple[Resource, Key]:
    """What to look at after an answer got lost. OutcomeUnknown if nobody knows its name."""
    resource, key = object_of(action)
    if not key.name:
        raise OutcomeUnknown(f"no answer, and no name to look for, after: {describe_action(action)}")
    return resource, key


def written_version_of(resource: Resource, document: Document) -> WrittenVersion:
    meta = document.get("metadata", {})
    key = Key(meta.get("namespace", ""), meta.get("name", ""))
    return WrittenVersion(resource.group_kind, key, meta.get("resourceVersion", ""), meta.get("uid", ""))


def version_to_await(action: Write, document: Document | None) -> WrittenVersion | None:
    """The version to wait for, as if the answer had come: our write is in it, and in the watch it is still to come."""
    if document is None or not isinstance(action, Create | Patch):
        return None
    return written_version_of(action.resource, document)


def describe_action(action: Action) -> str:
    """`Bind Pod shop/web-1`: for messages and logs."""
    resource, key = object_of(action)
    return f"{type(action).__name__} {resource.kind} {key}"
