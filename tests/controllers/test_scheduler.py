"""The scheduler controller on a state alone: what it binds, refuses and says, whom it tries again and when."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import HOSTNAME, a_node, a_pod, a_term, apart_from, spread_over, together_with
from scheduler_world import OURS, World, replace
from wukong.actions import Bind, Note, Patch
from wukong.api.core import Affinity, Node, Pod, PodAffinity, SchedulingGate
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.api.versions import VERSIONS
from wukong.controllers.scheduler.controller import Scheduler
from wukong.engine import RandomTies
from wukong.engine import Scheduler as Engine


def created(pod: Pod, second: int) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, creation_timestamp=f"2026-01-01T00:00:{second:02d}Z"))


def world_of(*objects: Any, **options: Any) -> World:
    world = World(**options)
    world.put(*objects)
    return world.settle()


# ---- placing


def test_a_pod_that_fits_is_bound_and_told_so() -> None:
    world = world_of(a_node("node-a"), a_pod("web"))
    uid = world.pod("web").metadata.uid
    assert world.done[0] == Bind(Key("default", "web"), "node-a", uid)
    (note,) = world.notes()
    assert (note.reason, note.text, note.is_warning) == (
        "Scheduled",
        "Successfully assigned default/web to node-a",
        False,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: replace(pod, spec=replace(pod.spec, scheduler_name="default-scheduler")),
        lambda pod: replace(pod, spec=replace(pod.spec, scheduling_gates=[SchedulingGate(name="wait")])),
        lambda pod: replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")),
        lambda pod: replace(pod, status=replace(pod.status, phase="Failed")),
    ],
)
def test_pods_of_others_gated_leaving_and_finished_ones_are_left_alone(change: Any) -> None:
    assert world_of(a_node(), change(a_pod("web"))).done == []


def test_a_pod_is_scheduled_once_its_gate_is_gone() -> None:
    pod = a_pod("web")
    world = world_of(
        a_node("node-a"), replace(pod, spec=replace(pod.spec, scheduling_gates=[SchedulingGate(name="x")]))
    )
    world.put(pod)
    assert world.settle().node_of("web") == "node-a"


def test_a_nameless_scheduler_means_the_default_one() -> None:
    world = World(Scheduler(["default-scheduler"]))
    pod = a_pod("web")
    world.put(a_node("node-a"), replace(pod, spec=replace(pod.spec, scheduler_name="default-scheduler")))
    assert world.settle().node_of("web") == "node-a"


def test_higher_priority_goes_first_then_the_older_pod() -> None:
    world = World()
    world.put(a_node("node-a", pods="2"))
    world.put(created(a_pod("young"), 2), created(a_pod("old"), 1), created(a_pod("high", priority=5), 3))
    world.settle()
    assert world.binds() == [("high", "node-a"), ("old", "node-a")]
    assert not world.node_of("young")


def test_what_was_bound_counts_before_the_watch_shows_it() -> None:
    world = World()
    world.put(a_node("node-a", cpu="1"), a_pod("one", cpu="1"), a_pod("two", cpu="1"))
    taken = world.dispatch.queue.take_due(world.now)
    outcomes = [world.dispatch.reconcile(item, world.now) for item in taken]
    assert [type(outcome.actions[0]) for outcome in outcomes] == [Bind, Note]
    assert len(world.state.placements) == 1


def test_ties_are_broken_by_whoever_is_asked() -> None:
    names = [f"node-{letter}" for letter in "abcdef"]

    def chosen(scheduler: Scheduler) -> str:
        world = World(scheduler)
        world.put(*map(a_node, names), a_pod("web"))
        return world.settle().node_of("web")

    assert chosen(Scheduler([OURS])) == "node-a"
    seeded = [chosen(Scheduler([OURS], ties=RandomTies(Random(7).randrange))) for _ in range(2)]
    assert seeded[0] == seeded[1] == names[Random(7).randrange(6)]


# ---- refusing


def test_a_pod_that_fits_nowhere_is_told_why_in_a_condition_and_an_event() -> None:
    world = world_of(a_node(cpu="1"), a_pod("web", cpu="2"))
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    (condition,) = world.pod("web").status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == message
    assert condition.last_transition_time == "1970-01-01T00:16:40Z"
    (note,) = world.notes()
    assert (note.reason, note.text, note.is_warning) == ("FailedScheduling", message, True)


def test_the_condition_is_written_only_when_it_changes_and_keeps_its_time() -> None:
    world = world_of(a_node("node-a", cpu="1"), a_pod("web", cpu="2"))
    world.settle(700)  # tried again after five minutes, twice
    assert len([action for action in world.done if isinstance(action, Patch)]) == 1
    assert len(world.notes("FailedScheduling")) == 3
    world.put(a_node("node-b", cpu="1", taints=["spot=true:NoSchedule"]))
    world.settle(300)
    (condition,) = world.pod("web").status.conditions
    assert condition.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint")
    (last,) = [action for action in world.done if isinstance(action, Patch)][1:]
    assert "lastTransitionTime" not in last.patch.body["status"]["conditions"][0]


def test_without_any_node_a_pod_waits_for_one() -> None:
    world = world_of(a_pod("web"))
    assert world.message("web") == "no nodes available to schedule pods"
    world.put(a_node("node-a"))
    assert world.settle().node_of("web") == "node-a"


def test_a_long_message_is_cut_for_the_event_but_not_for_the_condition() -> None:
    nodes = [a_node(f"node-{number}", taints=[f"{'x' * 60}-{number}=:NoSchedule"]) for number in range(40)]
    wanting = a_pod("web", requests={f"example.com/{'r' * 40}-{number}": "1" for number in range(20)}, tolerates="")
    open_nodes = [a_node(f"open-{number}") for number in range(2)]
    world = world_of(*nodes, *open_nodes, wanting)
    (note,) = world.notes()
    assert len(note.text) == 1024
    assert note.text.endswith(" ...")
    assert len(world.message("web")) > 1024


# ---- trying again

FULL = (a_node("node-a", cpu="1", zone="a"), a_pod("other", cpu="1", node="node-a"))
BIG = a_pod("web", cpu="1")


@pytest.mark.parametrize(
    ("before", "waiting", "event"),
    [
        (FULL, BIG, ("end", "Pod", "other", "default")),
        (FULL, BIG, ("put", replace(FULL[1], status=replace(FULL[1].status, phase="Succeeded")))),
        (FULL, BIG, ("put", a_node("node-b"))),
        (FULL, BIG, ("put", a_node("node-a", cpu="2", zone="a"))),
        ((a_node("node-a", unschedulable=True),), BIG, ("put", a_node("node-a"))),
        ((a_node("node-a", taints=["k=v:NoSchedule"]),), BIG, ("put", a_node("node-a"))),
        (
            (a_node("node-a"),),
            a_pod("web", node_selector={"disk": "ssd"}),
            ("put", a_node("node-a", labels={"disk": "ssd"})),
        ),
        (
            (a_node("node-a", zone="a"),),
            a_pod("web", affinity=together_with("db")),
            ("put", a_pod("db", app="db", node="node-a")),
        ),
        (
            (a_node("node-a", zone="a"), a_pod("db", app="db", node="node-a")),
            a_pod("web", affinity=apart_from("db")),
            ("end", "Pod", "db", "default"),
        ),
        (
            (a_node("node-a"), a_pod("shy", app="db", node="node-a", affinity=apart_from("web"))),
            a_pod("web"),
            ("end", "Pod", "shy", "default"),
        ),
        (
            (a_node("node-a"), a_pod("db", app="db", node="node-a", host_port=80)),
            a_pod("web", host_port=80),
            ("end", "Pod", "db", "default"),
        ),
        (
            (a_node("node-a", zone="a"), a_node("node-b", zone="b", cpu="50m"), a_pod("one", node="node-a")),
            a_pod("web", spread=[spread_over()]),
            ("end", "Pod", "one", "default"),
        ),
        (
            (a_node("node-a"),),
            a_pod("web", spread=[spread_over()]),
            ("put", a_node("node-a", zone="a")),
        ),
    ],
)
def test_an_event_that_helps_gives_the_pod_another_turn(before: Any, waiting: Pod, event: Any) -> None:
    world = world_of(*before, waiting)
    assert not world.node_of("web")
    getattr(world, event[0])(*event[1:])
    assert world.settle().node_of("web")


@pytest.mark.parametrize(
    "event",
    [
        ("put", a_node("node-b", cpu="500m")),
        ("put", a_node("node-a", cpu="1", zone="b")),
        ("put", a_pod("more", node="node-a")),
        ("put", replace(FULL[1], status=replace(FULL[1].status, phase="Running"))),
    ],
)
def test_an_event_that_cannot_help_gives_no_turn(event: Any) -> None:
    world = world_of(*FULL, BIG)
    getattr(world, event[0])(*event[1:])
    assert len(world.settle().notes("FailedScheduling")) == 1


SHY = a_pod("shy", app="db", node="node-a", affinity=apart_from("web"))  # who keeps others away
CHOOSY = a_pod("web", affinity=apart_from("db"))
TWO_TERMS = Affinity(pod_anti_affinity=PodAffinity(required=[a_term("db", HOSTNAME), a_term("cache", HOSTNAME)]))


@pytest.mark.parametrize(
    ("minor", "other", "waiting", "is_woken"),
    [
        ("1.35", a_pod("shy", app="db", node="node-a"), CHOOSY, True),
        ("1.35", SHY, a_pod("web"), False),  # kubernetes#134393: nobody asks whom the one that goes kept away
        ("1.36", SHY, a_pod("web"), True),
        ("1.37", SHY, a_pod("web"), True),
        ("1.35", a_pod("shy", app="db", node="node-a"), a_pod("web", affinity=TWO_TERMS), False),
        ("1.36", a_pod("shy", app="db", node="node-a"), a_pod("web", affinity=TWO_TERMS), False),
        ("1.37", a_pod("shy", app="db", node="node-a"), a_pod("web", affinity=TWO_TERMS), True),
    ],
    ids=range(7),
)
def test_a_stock_scheduler_wakes_pods_as_its_version_does(minor: str, other: Pod, waiting: Pod, is_woken: bool) -> None:
    """Ours wakes all of these; who is not woken waits for five minutes."""
    profile = default_profile(version=VERSIONS[minor])
    for is_stock in (True, False):
        world = World(Scheduler([OURS], profile, is_stock=is_stock))
        world.put(a_node("node-a", zone="a"), other, waiting)
        assert not world.settle(20).node_of("web")
        world.end("Pod", "shy", "default")
        assert bool(world.settle(20).node_of("web")) == (is_woken or not is_stock)
        assert world.settle(300).node_of("web") == "node-a"


CORDONED = "node.kubernetes.io/unschedulable=:NoSchedule"
IN_THE_WAY = {  # plugin → what is on node-a, and a pod that it refuses there
    "NodePorts": (a_pod("other", node="node-a", host_port=80), a_pod("web", host_port=80)),
    "NodeResourcesFit": (a_pod("other", node="node-a", cpu="3"), a_pod("web", cpu="2")),
    "InterPodAffinity": (a_pod("other", app="db", node="node-a"), a_pod("web", affinity=apart_from("db"))),
    "NodeAffinity": (a_pod("other", node="node-a"), a_pod("web", node_selector={"disk": "ssd"})),
    "TaintToleration": (a_pod("other", node="node-a"), a_pod("web")),
}


@pytest.mark.parametrize("is_stock", [True, False])
@pytest.mark.parametrize("plugin", IN_THE_WAY)
def test_a_stock_scheduler_tries_pods_again_when_any_taint_changes(plugin: str, is_stock: bool) -> None:
    """Whom only taints kept out is left alone, by both: a further taint cannot help."""
    other, waiting = IN_THE_WAY[plugin]
    world = World(Scheduler([OURS], is_stock=is_stock))
    taints = ["k=v:NoSchedule"] if plugin == "TaintToleration" else []
    world.put(a_node("node-a", zone="a", taints=taints), other, waiting)
    assert len(world.settle(20).notes("FailedScheduling")) == 1
    world.put(a_node("node-a", zone="a", unschedulable=True, taints=taints))
    assert len(world.settle(20).notes("FailedScheduling")) == 1
    world.put(a_node("node-a", zone="a", unschedulable=True, taints=[*taints, CORDONED]))
    is_tried_again = is_stock and plugin != "TaintToleration"
    assert len(world.settle(20).notes("FailedScheduling")) == (2 if is_tried_again else 1)
    assert ("1 node(s) were unschedulable" in world.message("web")) == is_tried_again


def test_a_stock_scheduler_waits_until_a_pod_that_is_counted_in_a_spread_is_gone() -> None:
    """kube-scheduler counts no pod that is terminating, yet hears of it only when it is deleted."""
    for is_stock in (True, False):
        world = World(Scheduler([OURS], is_stock=is_stock))
        nodes = a_node("node-a", zone="a"), a_node("node-b", zone="b", cpu="50m")
        world.put(*nodes, a_pod("one", node="node-a"), a_pod("web", spread=[spread_over()]))
        assert not world.settle(20).node_of("web")
        one = world.pod("one")
        leaving = replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        world.put(leaving)
        assert world.settle(20).node_of("web") == ("" if is_stock else "node-a")
        world.end("Pod", "one", "default")
        assert world.settle(20).node_of("web") == "node-a"


def test_a_changed_pod_is_tried_again() -> None:
    world = world_of(a_node("node-a", taints=["k=v:NoSchedule"]), a_pod("web"))
    pod = a_pod("web", tolerates="k")
    world.put(replace(pod, status=world.pod("web").status))
    assert world.settle().node_of("web") == "node-a"


def test_a_pod_is_tried_again_after_five_minutes_whatever_happens() -> None:
    world = world_of(*FULL, BIG).settle(299)
    assert len(world.notes("FailedScheduling")) == 1
    world.settle(2)
    assert len(world.notes("FailedScheduling")) == 2


def test_a_failed_binding_is_taken_back_and_tried_after_a_backoff() -> None:
    world = World()
    world.fails = [Bind]
    world.put(a_node("node-a"), a_pod("web"))
    world.settle()
    assert len(world.state.placements) == 0
    assert not world.node_of("web")
    assert world.settle(30).node_of("web") == "node-a"


def test_a_pod_whose_binding_fails_does_not_hold_up_the_others() -> None:
    world = World()
    world.fails = [Bind]
    world.put(a_node("node-a"), created(a_pod("first"), 1), created(a_pod("second"), 2))
    assert world.settle().binds() == [("second", "node-a")]
    assert world.settle(30).node_of("first") == "node-a"


def test_room_that_a_failed_binding_gives_back_helps_who_waits_for_it() -> None:
    world = World()
    world.fails = [Bind]
    world.put(a_node("node-a", cpu="1"), created(a_pod("first", cpu="1"), 1), created(a_pod("second", cpu="1"), 2))
    assert world.settle(30).binds() == [("second", "node-a")]


def test_a_refusal_that_could_not_be_written_is_written_later() -> None:
    world = World()
    world.fails = [Patch]
    world.put(a_node(cpu="1"), a_pod("web", cpu="2"))
    assert world.settle().message("web") == ""
    assert world.settle(10).message("web").startswith("0/1 nodes are available")


def test_an_assumed_placement_nobody_confirms_is_decided_anew() -> None:
    world = World()
    world.put(a_node("node-a"), a_pod("web"))
    (item,) = world.dispatch.queue.take_due(world.now)
    outcome = world.dispatch.reconcile(item, world.now)
    world.dispatch.finish(item, outcome, world.now)  # the binding got lost
    assert world.settle(59).binds() == []
    assert world.settle(10).binds() == [("web", "node-a")]


# ---- restarts and properties


def clusters() -> st.SearchStrategy[tuple[list[Node], list[Pod]]]:
    sizes = st.integers(1, 4)
    nodes = st.lists(sizes, min_size=1, max_size=4).map(
        lambda cpus: [a_node(f"node-{number}", cpu=str(cpu)) for number, cpu in enumerate(cpus)]
    )
    pods = st.lists(st.tuples(sizes, st.integers(0, 2)), max_size=8).map(
        lambda asks: [
            created(a_pod(f"pod-{number}", cpu=str(cpu), priority=priority, memory=None), number)
            for number, (cpu, priority) in enumerate(asks)
        ]
    )
    return st.tuples(nodes, pods)


def unforced(pods: list[Pod]) -> list[Pod]:
    return [replace(pod, spec=replace(pod.spec, preemption_policy="Never")) for pod in pods]


@given(clusters())
@settings(max_examples=40, deadline=None)
def test_pods_land_where_the_engine_puts_them_in_order_of_priority_and_age(
    cluster: tuple[list[Node], list[Pod]],
) -> None:
    nodes, pods = cluster[0], unforced(cluster[1])
    world = world_of(*nodes, *pods)
    bare = World()
    bare.put(*nodes)
    engine = Engine(bare.state.snapshot.fork())
    by_rank = sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or ""))
    expected = [(pod.metadata.name, node) for pod in by_rank if (node := engine.place(pod))]
    assert world.binds() == expected


@given(clusters(), st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_a_restarted_scheduler_decides_like_one_that_went_on(cluster: tuple[list[Node], list[Pod]], turns: int) -> None:
    nodes, pods = cluster[0], unforced(cluster[1])

    def play(*, restarts: bool) -> dict[str, str]:
        world = World()
        world.put(*nodes, *pods)
        for item in world.dispatch.queue.take_due(world.now, turns):
            world._work(item)
        if restarts:
            restarted = World()
            restarted.put(
                *(
                    subject
                    for kind in ("Node", "Pod")
                    for _, subject in sorted(world.state.objects.get(kind, {}).items())
                )
            )
            world = restarted
        world.settle()
        return {pod.metadata.name: world.node_of(pod.metadata.name) for pod in pods}

    assert play(restarts=True) == play(restarts=False)


@given(clusters())
@settings(max_examples=40, deadline=None)
def test_no_node_is_ever_overbooked_and_the_scheduler_comes_to_rest(cluster: tuple[list[Node], list[Pod]]) -> None:
    nodes, pods = cluster
    world = world_of(*nodes, *pods).settle(400)
    for node in nodes:
        placed_pods = world.state.pods_on(node.metadata.name)
        requested = sum(int(str(pod.spec.containers[0].resources.requests["cpu"])) for pod in placed_pods)
        assert requested <= int(str(node.status.allocatable["cpu"]))


def test_a_fork_is_scheduled_from_its_own_state() -> None:
    world = world_of(*FULL, BIG)
    fork = world.state.fork()
    fork.apply("DELETED", fork.objects["Pod"][Key("default", "other")])
    outcome = world.scheduler.reconcile(Key("default", "web"), fork, world.now)
    assert [type(action) for action in outcome.actions] == [Bind, Note]
    assert msgspec.json.encode(outcome)


def test_nothing_is_kept_of_pods_that_have_their_node_or_are_gone() -> None:
    world = world_of(*FULL, BIG, a_node("node-b", cpu="500m"), a_pod("small", cpu="100m"))
    world.end("Pod", "web", "default")
    world.settle()
    scheduler = world.scheduler
    assert (len(scheduler._queue), scheduler._decided, scheduler._queue.parked) == (0, {}, {})
