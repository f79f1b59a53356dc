"""Our scheduler as a component: its metrics, its extensions, and what it is told by others' options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from builders import a_node, a_pod
from wukong.actions import Bind, Note, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import PLACEMENT_POLICIES, PODS
from wukong.api.resources import Key
from wukong.app.assemble import assemble
from wukong.app.component import Component, Context, SchedulerExtension
from wukong.app.components.extender import EXTENDER
from wukong.app.components.extender.options import ExtenderOptions
from wukong.app.components.scheduler import SCHEDULER, SchedulerOptions
from wukong.app.extensions import chain
from wukong.controllers.scheduler.choice import Extension
from wukong.engine import Scheduler as Engine
from wukong.engine import Snapshot
from wukong.engine.arrays import Ints
from wukong.engine.view import View
from wukong.errors import InputError
from wukong.placement.rules import BUILT_IN
from wukong.runtime import Metrics
from wukong.runtime.dispatch import Dispatch
from wukong.state import State

NAME = "wukong-scheduler"
replace = msgspec.structs.replace


class Clock:
    def now(self) -> float:
        return 1000.0


class Process:
    """A process of these components, with a mirror of what it is given, which performs nothing."""

    def __init__(self, *components: Component[Any], stale_seconds: float = 0.0, **options: msgspec.Struct) -> None:
        self.state, self.metrics = State(), Metrics()
        context = Context(
            self.state, self.metrics, Clock(), BUILT_IN, options, node_staleness=lambda now: stale_seconds
        )
        self.assembly = assemble(components or (SCHEDULER,), context)
        self.dispatch = Dispatch(self.assembly.controllers, self.state)

    def put(self, *subjects: Any) -> None:
        for subject in subjects:
            added = give_scheduler(subject) if isinstance(subject, Pod) else subject
            self.dispatch.observe(self.state.apply("ADDED", added), 1000.0)

    def decide(self) -> list[Outcome]:
        outcomes = []
        while due := self.dispatch.queue.take_due(1000.0, 1):
            outcomes.append(self.dispatch.reconcile(due[0], 1000.0))
            self.dispatch.queue.finish(due[0])
        return outcomes

    def list_bindings(self) -> dict[str, str]:
        actions = [action for outcome in self.decide() for action in outcome.actions]
        return {action.key.name: action.node for action in actions if isinstance(action, Bind)}

    def figures(self) -> dict[tuple[str, str], float]:
        """Name and only label → value."""
        families = text_string_to_metric_families(self.metrics.text().decode())
        samples = [sample for family in families for sample in family.samples if "le" not in sample.labels]
        return {(sample.name, next(iter(sample.labels.values()), "")): sample.value for sample in samples}


def give_scheduler(pod: Pod) -> Pod:
    meta = replace(pod.metadata, uid=f"uid-of-{pod.metadata.name}", creation_timestamp="1970-01-01T00:15:00Z")
    return replace(pod, metadata=meta, spec=replace(pod.spec, scheduler_name=NAME))


def test_it_says_how_long_attempts_take_how_many_pods_wait_and_how_long() -> None:
    process = Process()
    process.put(a_node("n1", cpu="1"), a_pod("fits"), a_pod("big", cpu="9"))
    before = process.figures()
    assert before["wukong_scheduler_oldest_pending_seconds", ""] == 0.0
    process.decide()
    process.put(a_pod("next"))
    figures = process.figures()
    assert figures["wukong_scheduling_attempt_seconds_count", "scheduled"] == 1
    assert figures["wukong_scheduling_attempt_seconds_count", "unschedulable"] == 1
    assert figures["wukong_scheduler_pending_pods", "active"] == 1
    assert figures["wukong_scheduler_pending_pods", "unschedulable"] == 1
    assert figures["wukong_scheduler_pending_pods", "backoff"] == 0
    assert figures["wukong_scheduler_oldest_pending_seconds", ""] == 100.0
    process.put(a_node("n2", cpu="4"), a_node("n3", cpu="16"))  # the first does not help, the second does
    assert process.figures()["wukong_scheduler_pending_pods", "backoff"] == 1


SPOT, STEADY = {"node.kubernetes.io/capacity": "spot"}, {"node.kubernetes.io/capacity": "on-demand"}


@pytest.mark.parametrize(("strategy", "node"), [("spot-first", "b-spot"), ("on-demand-first", "a-steady")])
@pytest.mark.parametrize("components", [(SCHEDULER,), (SCHEDULER, EXTENDER)], ids=["alone", "beside the extender"])
def test_it_judges_by_the_options_of_the_extender_whether_that_runs_or_not(
    components: tuple[Component[Any], ...], strategy: str, node: str
) -> None:
    process = Process(*components, extender=ExtenderOptions(default_strategy=strategy, plain_http=True))
    process.put(a_node("a-steady", labels=STEADY), a_node("b-spot", labels=SPOT), a_pod("web"))
    assert process.list_bindings() == {"web": node}


@pytest.mark.parametrize(("stale_seconds", "node"), [(0.0, "b-spot"), (163.0, "a-steady")])
def test_with_an_old_mirror_no_spot_node_is_trusted(stale_seconds: float, node: str) -> None:
    process = Process(stale_seconds=stale_seconds)
    process.put(a_node("a-steady", labels=STEADY), a_node("b-spot", labels=SPOT), a_pod("web"))
    assert process.list_bindings() == {"web": node}


def test_policies_are_watched_and_need_not_be_installed() -> None:
    (controller,) = Process().assembly.controllers
    watches = {watch.resource: watch for watch in controller.watches}
    assert watches[PLACEMENT_POLICIES].optional
    assert not watches[PODS].optional


def test_kube_schedulers_own_name_is_refused() -> None:
    with pytest.raises(InputError, match="two schedulers would fill the same room"):
        Process(scheduler=SchedulerOptions(("default-scheduler",)))


# ---- several extensions as one


def an_extension(points: int | None, calls: list[str], name: str) -> SchedulerExtension:
    note = Note(PODS, Key("default", "web"), "Told", name)

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, Callable[[View], tuple[Note, ...]]]:
        calls.append(f"extend {name}")
        return engine, lambda view: (note,)

    def find_points(view: View, pod: Pod, now: float) -> tuple[Ints, tuple[Note, ...]] | None:
        return None if points is None else (np.full(len(view.snapshot.rows), points, dtype=np.int64), (note,))

    return SchedulerExtension(Extension(extend, find_points, lambda pod: calls.append(f"announce {name}")), ())


def a_view() -> tuple[Engine, View, Pod]:
    snapshot, pod = Snapshot(), a_pod("web")
    snapshot.set_nodes([a_node("n1"), a_node("n2")])
    engine = Engine(snapshot)
    return engine, engine.view_of(pod), pod


def test_the_points_and_notes_of_several_extensions_are_added_up() -> None:
    engine, view, pod = a_view()
    calls: list[str] = []
    chained = chain([an_extension(3, calls, "a"), an_extension(4, calls, "b")])
    chained.announce(pod)
    answer = chained.find_points(view, pod, 0.0)
    assert answer is not None
    assert (answer[0].tolist(), [note.text for note in answer[1]]) == ([7, 7], ["a", "b"])
    _, notes_of = chained.extend(engine, pod, 0.0)
    assert [note.text for note in notes_of(view)] == ["a", "b"]
    assert calls == ["announce a", "announce b", "extend a", "extend b"]


def test_where_one_refuses_a_node_there_are_no_points() -> None:
    _, view, pod = a_view()
    assert chain([an_extension(3, [], "a"), an_extension(None, [], "b")]).find_points(view, pod, 0.0) is None
