"""How an action is carried out when answers get lost: do it, look if nobody answered, repeat what did not happen.

Shared by `perform` (a cluster over the network) and by the embedded world, so that both keep the same promise. Without
I/O: `delivery_steps` asks its driver to DO the action or to LOOK at its object, and is told what came of it.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum

from wukong.actions import Action, Bind, Create, Evict, Note, Patch
from wukong.api.kinds import PODS
from wukong.api.resources import Key, Resource
from wukong.errors import AlreadyExists, Conflict, OutcomeUnknown
from wukong.ports import Document
from wukong.runtime.effect_check import Write, has_happened
from wukong.runtime.pending_writes import WrittenVersion

TRIES = 3
_PODS = PODS


class Ask(Enum):
    DO = "do"  # answered with what was written, where the API server says, or with its error thrown in
    LOOK = "look"  # answered with the object as it is now, or None; OutcomeUnknown is thrown in if none can tell


DO, LOOK = Ask.DO, Ask.LOOK
Answer = WrittenVersion | Document | None


def delivery_steps(action: Write) -> Generator[Ask, Answer, WrittenVersion | None]:
    """Gives the version it wrote, where the API server says. Raises what its driver throws in, or OutcomeUnknown."""
    is_in_doubt = False
    for _ in range(TRIES):
        try:
            answer = yield DO
            return answer if isinstance(answer, WrittenVersion) else None
        except OutcomeUnknown:
            is_in_doubt = True
            found = _document((yield LOOK))
            if has_happened(action, found):
                return shown(action, found)
        except (AlreadyExists, Conflict):
            # After a lost answer this may be our own write: the first request arrived late.
            if is_in_doubt and has_happened(action, found := _document((yield LOOK))):
                return shown(action, found)
            raise
    raise OutcomeUnknown(f"no answer {TRIES} times to: {described(action)}")


def settle_doubt(action: Write, found: Document | None) -> WrittenVersion | None:
    """After an unknown outcome, with the object as it is now: the version to wait for if it has happened."""
    return shown(action, found) if has_happened(action, found) else None


def subject(action: Action) -> tuple[Resource, Key]:
    """The object an action is about. A name still to be generated is ""."""
    if isinstance(action, Create):
        meta = action.body.get("metadata", {})
        return action.resource, Key(action.namespace or meta.get("namespace", ""), meta.get("name", ""))
    if isinstance(action, Evict | Bind):
        return _PODS, action.key
    if isinstance(action, Note):
        return action.about, action.key
    return action.resource, action.key


def sought(action: Write) -> tuple[Resource, Key]:
    """What to look at after an answer got lost. OutcomeUnknown if nobody knows its name."""
    resource, key = subject(action)
    if not key.name:
        raise OutcomeUnknown(f"no answer, and no name to look for, after: {described(action)}")
    return resource, key


def unseen(action: Write, error: Exception) -> OutcomeUnknown:
    return OutcomeUnknown(f"no answer, and none when looking again ({error}): {described(action)}")


def written_of(resource: Resource, found: Document) -> WrittenVersion:
    meta = found.get("metadata", {})
    key = Key(meta.get("namespace", ""), meta.get("name", ""))
    return WrittenVersion(resource.group_kind, key, meta.get("resourceVersion", ""), meta.get("uid", ""))


def shown(action: Write, found: Document | None) -> WrittenVersion | None:
    """The version to wait for, as if the answer had come: our write is in it, and in the watch it is still to come."""
    if found is None or not isinstance(action, Create | Patch):
        return None
    return written_of(action.resource, found)


def described(action: Action) -> str:
    """`Bind Pod shop/web-1`: for messages and logs."""
    resource, key = subject(action)
    return f"{type(action).__name__} {resource.kind} {key}"


def _document(answer: Answer) -> Document | None:
    return answer if isinstance(answer, dict) else None
