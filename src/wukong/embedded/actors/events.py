"""Events of the built-in controllers, word for word as Kubernetes writes them, as Notes. Used by the actors.

They are in the trace and nowhere else: nothing that happens depends on them, and storing them would cost as much as
the pods they are about. The name of a new pod is known only once it is there, so `CreatedPods` remembers which owners
asked for pods.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import Action, Create, Delete, Note
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Resource, key_of
from wukong.embedded.actors.owned_pods import OwnedPodsIndex
from wukong.embedded.actors.pods import delete_pod
from wukong.embedded.world.objects import Pod
from wukong.state import State
from wukong.state.attempts import Attempt


def note_about(resource: Resource, subject: Object, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return Note(resource, key_of(subject), reason, text, uid=subject.metadata.uid, is_warning=is_warning)


def note_about_pod(pod: AnyPod, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return note_about(PODS, pod, reason, text, is_warning=is_warning)


def delete_pods(resource: Resource, owner: Object, pods: Iterable[Pod]) -> list[Delete | Note]:
    """Delete these pods, each with the Event that its owner writes."""
    return [
        action
        for pod in pods
        for action in (
            delete_pod(pod),
            note_about(resource, owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"),
        )
    ]


def find_creation_failure(attempt: Attempt | None, actions: Iterable[Action]) -> Attempt | None:
    """The failure that an owner had when it last asked for pods, if it asks for some again."""
    creates = any(isinstance(action, Create) and action.resource == PODS for action in actions)
    return attempt if creates else None


def message_of(failure: Attempt) -> str:
    """What the API server answered, without our name of the error."""
    return failure.error.partition(": ")[2]


def note_failed_create(resource: Resource, owner: Object, failure: Attempt) -> Note:
    text = f"Error creating: {message_of(failure)}"
    return note_about(resource, owner, "FailedCreate", text, is_warning=True)


class CreatedPods:
    """Notes about pods that an owner created, written once they are in the mirror.

    What it remembers may be lost: then there is no note.
    """

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._arrived_before: dict[str, int] = {}  # uid of an owner → how many pods had come when it asked for more

    def copy_memory(self, source: CreatedPods) -> None:
        self._arrived_before = dict(source._arrived_before)

    def remember(self, owner: Object, state: State) -> None:
        """Call this when the owner asks for more pods."""
        self._arrived_before[owner.metadata.uid] = state.index_of(OwnedPodsIndex).arrived

    def note_created(self, owner: Object, state: State) -> list[Note]:
        """Notes about the owner's pods that were not there when it asked for more. Each is written once."""
        before = self._arrived_before.pop(owner.metadata.uid, None)
        created = state.index_of(OwnedPodsIndex).of(owner).list_arrived_since(before) if before is not None else []
        return [note_about(self.resource, owner, "SuccessfulCreate", f"Created pod: {key.name}") for key in created]
