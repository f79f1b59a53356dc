"""What is looked at again at rest: what changed, who owns it, the budgets around it, and the pods of its node."""

from __future__ import annotations

from builders import a_node, a_pod
from wukong.api.apps import PodDisruptionBudget, ReplicaSet, WorkloadMeta
from wukong.api.core import Node, Pod
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.resources import key_of
from wukong.embedded.checkers.touched_objects import TouchedObjects
from wukong.state import Change, State


def a_state() -> State:
    """Two nodes with a pod each; a ReplicaSet owns the first, and each namespace has a budget."""
    state = State()
    first, second = a_pod("a", node="n0"), a_pod("b", node="n1", namespace="other")
    first.metadata.owner_references = [
        OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=True)
    ]
    state.replace("Node", [a_node("n0"), a_node("n1")])
    state.replace("Pod", [first, second])
    owner = ReplicaSet(metadata=WorkloadMeta(name="web", namespace="default", uid="1"), kind="ReplicaSet")
    state.replace("ReplicaSet.apps", [owner])
    budgets = [PodDisruptionBudget(metadata=ObjectMeta(name="web", namespace=name)) for name in ("default", "other")]
    state.replace("PodDisruptionBudget.policy", budgets)
    return state


def a_change(group_kind: str, subject: Object, *, is_gone: bool = False) -> Change:
    return Change("MODIFIED", group_kind, key_of(subject), subject, None if is_gone else subject)


def names(touched: TouchedObjects, struct: type[Object], state: State) -> list[str]:
    return [subject.metadata.name for subject in touched.list_all(struct, state)]


def test_nothing_is_looked_at_where_nothing_happened() -> None:
    state, touched = a_state(), TouchedObjects()
    for struct in (Pod, Node, ReplicaSet, PodDisruptionBudget):
        assert touched.list_all(struct, state) == []
    assert list(touched.list_changed(state)) == []


def test_a_pod_leads_to_its_owner_and_to_the_budgets_of_its_namespace() -> None:
    state, touched = a_state(), TouchedObjects()
    touched.observe(a_change("Pod", next(iter(state.all(Pod)))))
    assert (names(touched, Pod, state), names(touched, ReplicaSet, state)) == (["a"], ["web"])
    assert [budget.metadata.namespace for budget in touched.list_all(PodDisruptionBudget, state)] == ["default"]
    assert names(touched, Node, state) == []


def test_a_pod_that_is_gone_leads_to_its_owner_too() -> None:
    state, touched = a_state(), TouchedObjects()
    pod = next(iter(state.all(Pod)))
    touched.observe(a_change("Pod", pod, is_gone=True))
    state.apply("DELETED", pod)
    assert (names(touched, Pod, state), names(touched, ReplicaSet, state)) == ([], ["web"])


def test_a_node_leads_to_the_pods_on_it() -> None:
    state, touched = a_state(), TouchedObjects()
    touched.observe(a_change("Node", a_node("n1")))
    assert (names(touched, Node, state), names(touched, Pod, state)) == (["n1"], ["b"])
    assert [subject.metadata.name for subject in touched.list_changed(state)] == ["n1"]


def test_what_was_there_before_can_be_included_and_all_be_forgotten() -> None:
    state, touched = a_state(), TouchedObjects()
    touched.include((group_kind, objects) for group_kind, objects in state.objects.items())
    assert names(touched, Pod, state) == ["a", "b"]
    assert len(list(touched.list_changed(state))) == 7
    fork = touched.fork()
    touched.clear()
    for struct in (Pod, Node, ReplicaSet, PodDisruptionBudget):
        assert touched.list_all(struct, state) == []
        assert len(fork.list_all(struct, state)) >= 1
    assert list(touched.list_changed(state)) == []
    touched.observe(a_change("Node", a_node("n0")))
    assert names(fork, Node, state) == ["n0", "n1"]
