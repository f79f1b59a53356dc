"""Events find their keys, outcomes their consequences, failures their way into the state."""

from __future__ import annotations

from builders import a_node, a_pod
from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.errors import Conflict, GateRefusal, TooManyRequests
from wukong.runtime.dispatch import ASSUMED_SECONDS, Dispatch, Item
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion
from wukong.runtime.queue import Backoff
from wukong.state import State
from wukong.state.controller import Watch, each_side

WEB = Key("default", "web-1")
UNSEEN = Key("default", "unseen")
ITEM = Item("nodes", Key("", "n0"))


class Nodes:
    """One key per node; a pod concerns the node it is on."""

    name = "nodes"

    def __init__(self, outcome: Outcome = DONE) -> None:
        self.outcome = outcome
        self.watches = (Watch(NODES), Watch(PODS, keys=each_side(node_of)))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return self.outcome


def node_of(found: Object, _: State) -> list[Key]:
    assert isinstance(found, Pod)
    return [Key("", found.spec.node_name)] if found.spec.node_name else []


def a_dispatch(outcome: Outcome = DONE) -> Dispatch:
    dispatch = Dispatch([Nodes(outcome)], State(), Backoff(first=1.0))
    dispatch.state.replace("Node", [a_node("n0")])
    dispatch.state.apply("ADDED", a_pod(WEB.name))
    return dispatch


def test_what_the_gate_holds_comes_back_when_the_gate_said_and_else_after_a_backoff() -> None:
    dispatch = a_dispatch()
    for error, expected in ((GateRefusal("no", again_seconds=7.0), 7.0), (GateRefusal("never"), 1.0)):
        dispatch.queue.add(ITEM, 0.0)
        (item,) = dispatch.queue.take_due(0.0)
        assert dispatch.fail(item, error, 0.0, 0.0) == expected
        assert dict(dispatch.queue.waiting) == {ITEM: expected}
        dispatch.queue.forget(ITEM)
        assert dispatch.queue.take_due(expected) == [ITEM]
        dispatch.queue.finish(ITEM)


def test_a_change_concerns_where_the_object_was_and_where_it_is() -> None:
    dispatch = a_dispatch()
    dispatch.state.apply("ADDED", a_pod("a", node="n1"))
    dispatch.observe(dispatch.state.apply("MODIFIED", a_pod("a", node="n0")), 0.0)
    dispatch.observe(dispatch.state.apply("MODIFIED", a_node("n0", cpu="1")), 0.0)
    assert [str(item) for item in dispatch.queue.take_due(0.0)] == ["nodes n1", "nodes n0"]


def test_an_outcome_comes_back_when_it_asked_to() -> None:
    dispatch = a_dispatch(Outcome(requeue_after=7.0))
    dispatch.queue.add(ITEM, 0.0)
    (item,) = dispatch.queue.take_due(0.0)
    dispatch.finish(item, dispatch.reconcile(item, 0.0), 1.0)
    assert dispatch.next_due() == 8.0


def test_there_is_something_to_do_from_the_moment_on_that_comes_next() -> None:
    dispatch = a_dispatch()
    assert not dispatch.is_due(0.0)
    dispatch.queue.add(ITEM, 5.0)
    assert (dispatch.is_due(4.9), dispatch.is_due(5.0)) == (False, True)
    dispatch.queue.take_due(5.0)
    assert not dispatch.is_due(5.0)
    dispatch.queue.finish(ITEM)
    write_unseen(dispatch)
    assert (dispatch.is_due(PATIENCE - 0.1), dispatch.is_due(PATIENCE)) == (False, True)
    dispatch.expire(PATIENCE)
    assert not dispatch.is_due(PATIENCE)
    dispatch.state.assume(WEB, "n0", PATIENCE, ttl=60.0)
    assert (dispatch.is_due(PATIENCE + 59.0), dispatch.is_due(PATIENCE + 60.0)) == (False, True)


def test_a_failure_is_remembered_and_the_key_comes_back_later() -> None:
    dispatch = a_dispatch()
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    assert dispatch.fail(ITEM, Conflict("changed"), 5.0, 0.0) == 1.0
    attempt = dispatch.state.attempts.get("nodes", ITEM.key)
    assert attempt is not None
    assert (attempt.count, attempt.error, attempt.at) == (1, "Conflict: changed", 5.0)
    assert dispatch.queue.take_due(6.0) == [ITEM]
    dispatch.finish(ITEM, DONE, 6.0)
    assert dispatch.state.attempts.get("nodes", ITEM.key) is None


def test_the_server_may_say_how_long_to_wait() -> None:
    dispatch = a_dispatch()
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    assert dispatch.fail(ITEM, TooManyRequests("budget", retry_after=30.0), 0.0, 0.9) == 30.0


def test_a_pod_we_bind_counts_at_once_and_no_longer_when_binding_failed() -> None:
    bind = Bind(WEB, "n0")
    dispatch = a_dispatch(Outcome((bind,)))
    dispatch.queue.add(ITEM, 0.0)
    (item,) = dispatch.queue.take_due(0.0)
    outcome = dispatch.reconcile(item, 0.0)
    assert str(WEB) in dispatch.state.snapshot.pods
    assert dispatch.next_due() == ASSUMED_SECONDS
    dispatch.fail(item, Conflict("no"), 0.0, 0.0, undone=outcome.actions)
    assert str(WEB) not in dispatch.state.snapshot.pods


def test_a_placement_nobody_confirmed_is_looked_at_again() -> None:
    dispatch = Dispatch([Pods()], State())
    dispatch.state.apply("ADDED", a_pod(WEB.name))
    dispatch.state.assume(WEB, "n0", 0.0, 5.0)
    dispatch.expire(5.0)
    assert dispatch.queue.take_due(5.0) == [Item("pods", WEB)]


class Pods:
    name = "pods"
    watches = (Watch(PODS),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


def a_write(version: str) -> WrittenVersion:
    return WrittenVersion("Pod", WEB, version)


def a_pod_at(version: str) -> Pod:
    pod = a_pod(WEB.name)
    pod.metadata.resource_version = version
    return pod


def test_a_key_that_failed_in_the_middle_rests_until_what_it_did_write_shows() -> None:
    dispatch = a_dispatch()
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    dispatch.fail(ITEM, Conflict("changed"), 0.0, 0.0, (), [a_write("7")])
    assert dispatch.queue.take_due(3.0) == []
    dispatch.observe(dispatch.state.apply("MODIFIED", a_pod_at("7")), 3.0)
    assert dispatch.queue.take_due(3.0) == [ITEM]


def test_the_deletion_of_an_earlier_object_is_not_the_echo_of_a_new_one() -> None:
    dispatch = a_dispatch()
    old = a_pod_at("5")
    dispatch.state.apply("MODIFIED", old)
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    dispatch.finish(ITEM, Outcome(requeue_after=0.0), 0.0, [a_write("7")._replace(uid="another")])
    dispatch.observe(dispatch.state.apply("DELETED", old), 1.0)
    assert dispatch.queue.take_due(1.0) == []
    new = a_pod_at("7")
    new.metadata.uid = "another"
    dispatch.observe(dispatch.state.apply("ADDED", new), 2.0)
    assert dispatch.queue.take_due(2.0) == [ITEM]


def test_what_the_state_shows_already_is_not_waited_for() -> None:
    dispatch = a_dispatch()
    dispatch.state.apply("MODIFIED", a_pod_at("7"))
    for version, expected in (("7", [ITEM]), ("8", [])):
        dispatch.queue.add(ITEM, 0.0)
        dispatch.queue.take_due(0.0)
        dispatch.finish(ITEM, Outcome(requeue_after=0.0), 0.0, [a_write(version)])
        assert dispatch.queue.take_due(0.0) == expected
        dispatch.queue.finish(ITEM) if expected else None


def write_unseen(dispatch: Dispatch) -> None:
    """The item has written a pod that no watch ever shows."""
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    dispatch.finish(ITEM, DONE, 0.0, [a_write("7")._replace(key=UNSEEN)])


def list_again(dispatch: Dispatch, now: float, *pods: Pod) -> None:
    changes = dispatch.state.replace("Pod", [*dispatch.state.all(Pod), *pods])
    dispatch.observe(changes, now)
    dispatch.observe_list("Pod", now)


def test_a_key_whose_write_a_list_passes_over_is_decided_again_when_it_has_rested() -> None:
    dispatch = a_dispatch()
    write_unseen(dispatch)
    list_again(dispatch, 1.0)
    assert dispatch.queue.take_due(1.0) == []  # the list may be older than the write
    dispatch.expire(PATIENCE)
    assert dispatch.queue.take_due(PATIENCE) == [ITEM]


def test_a_key_that_has_rested_long_enough_is_decided_again_if_a_later_list_passes_over_its_write() -> None:
    dispatch = a_dispatch()
    write_unseen(dispatch)
    dispatch.expire(PATIENCE)
    dispatch.observe_list("Node", 9.0)
    assert dispatch.queue.take_due(9.0) == []
    list_again(dispatch, 9.0)
    assert dispatch.queue.take_due(9.0) == [ITEM]
    dispatch.finish(ITEM, DONE, 9.0)
    list_again(dispatch, 10.0)
    assert dispatch.queue.take_due(10.0) == []


def test_a_key_at_work_while_a_list_comes_is_decided_again() -> None:
    dispatch = a_dispatch()
    dispatch.queue.add(ITEM, 0.0)
    dispatch.queue.take_due(0.0)
    list_again(dispatch, 0.5)
    dispatch.finish(ITEM, DONE, 1.0)
    assert dispatch.queue.take_due(1.0) == [ITEM]


def test_a_write_that_shows_late_is_not_looked_for_in_a_list() -> None:
    dispatch = a_dispatch()
    write_unseen(dispatch)
    dispatch.expire(PATIENCE)
    shown = a_pod(UNSEEN.name)
    shown.metadata.resource_version = "7"
    dispatch.observe(dispatch.state.apply("ADDED", shown), 8.0)
    list_again(dispatch, 9.0)
    assert dispatch.queue.take_due(9.0) == []
