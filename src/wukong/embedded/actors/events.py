"""Events of the built-in controllers, word for word as Kubernetes tells them, as Notes. Used by the actors.

They are in the trace and nowhere else: nothing that happens depends on them, and storing them would cost as much as
the pods they are about. The name of a new pod is known once it is there; so `CreatedPods` remembers who was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import Delete, Note
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource, key_of
from wukong.embedded.actors import pods
from wukong.embedded.world.objects import Pod


def note(about: Resource, found: Object, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return Note(about, key_of(found), reason, text, uid=found.metadata.uid, is_warning=is_warning)


def of_pod(pod: AnyPod, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return note(PODS, pod, reason, text, is_warning=is_warning)


def deleted(resource: Resource, owner: Object, leaving: Iterable[Pod]) -> list[Delete | Note]:
    """Deletions, each told as its owner does."""
    return [
        action
        for pod in leaving
        for action in (
            pods.deletion(pod),
            note(resource, owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"),
        )
    ]


class CreatedPods:
    """Pods that an owner asked for and that are there when it looks again. Forgotten asks are only not told."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._before: dict[str, frozenset[Key]] = {}  # uid of an owner → its pods when it asked for more

    def asked(self, owner: Object, owned: Iterable[Key]) -> None:
        self._before[owner.metadata.uid] = frozenset(owned)

    def told(self, owner: Object, owned: Iterable[Key]) -> list[Note]:
        before = self._before.pop(owner.metadata.uid, None)
        if before is None:
            return []
        came = sorted(set(owned) - before)
        return [note(self.resource, owner, "SuccessfulCreate", f"Created pod: {key.name}") for key in came]
