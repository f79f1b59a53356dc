"""What Wukongs cost the extender beside policies, and what a pod's change costs the labels of free resources.

`python -m bench --wukongs` runs it. All figures are processor time; ratios are of figures of the same run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from bench.extender import requests
from wukong.api.core import Pod
from wukong.api.decode import decode_objects
from wukong.api.meta import Object
from wukong.api.placement import PlacementPolicy
from wukong.api.resources import Key
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.controllers.load.controller import Load
from wukong.controllers.load.free_labels import FreeSettings
from wukong.replies.extender.verbs import Extender, Settings
from wukong.state import State

NODES, POLICIES, WUKONGS = 1_000, 1_000, 1_000
ROUNDS, CHANGES = 5, 200
JUDGING = Settings(judges_wukong_resources=True)
AFFINITY = {
    "preferredCPU": {"weight": 80, "threshold": "70%"},
    "requiredResources": [{"resourceType": "memory", "minAvailable": "1Gi"}],
}


def main(say: Callable[[str], None]) -> None:
    say(f"{POLICIES:,} policies, with and without {WUKONGS:,} Wukongs")
    plain, machines = time_questions(False), time_questions(True)
    for name, before, after in zip(("first question", "later question"), plain, machines, strict=True):
        print(
            f"{name}: {before:.0f} µs of pods that {POLICIES:,} policies select, {after:.0f} µs where they are of "
            f"{WUKONGS:,} Wukongs as well ({after / before:.2f}×); {NODES:,} nodes"
        )
    say("edits")
    time_edits(1)  # to be warm
    baseline = 0.0
    for count in (1, 100, 10_000):
        figure = time_edits(count)
        baseline = baseline or figure
        print(f"a Wukong among {count:,} is edited: {figure:.0f} µs until the next answer ({figure / baseline:.2f}×)")
    say("labels of free resources")
    time_labels(100)
    baseline = 0.0
    for count in (100, 1_000, 5_000):
        figure = time_labels(count)
        baseline = baseline or figure
        print(f"a pod comes to one of {count:,} nodes: {figure:.0f} µs until its labels ({figure / baseline:.2f}×)")


def time_questions(has_wukongs: bool) -> tuple[float, float]:
    """Microseconds of processor time for filter and prioritize: of a pod not seen before, and again."""
    state = build_state(NODES)
    put_all(state, [a_policy(number) for number in range(POLICIES)])
    if has_wukongs:
        put_all(state, [a_wukong(number) for number in range(WUKONGS)])
    extender = Extender(state, JUDGING)
    pods = [a_pod(number, number) for number in range(WUKONGS)]
    ask(extender, a_pod(WUKONGS, WUKONGS))  # compiles what there is
    first = time_all([lambda pod=pod: ask(extender, pod) for pod in pods])  # type: ignore[misc]
    later = min(time_all([lambda pod=pod: ask(extender, pod) for pod in pods]) for _ in range(ROUNDS))  # type: ignore[misc]
    return first, later


def time_edits(count: int) -> float:
    state = build_state(100)
    put_all(state, [a_wukong(number) for number in range(count)])
    extender, pod = Extender(state, JUDGING), a_pod(0, 0)
    ask(extender, pod)

    def edit(turn: int) -> None:
        put(state, a_wukong(0, weight=1 + turn % 100), turn + 1_000_000)
        ask(extender, pod)

    return time_all([lambda turn=turn: edit(turn) for turn in range(CHANGES)])  # type: ignore[misc]


def time_labels(count: int) -> float:
    """From the change of a pod to the decision about its node, beside WUKONGS Wukongs that ask for floors."""
    state, load = build_state(count), Load(free=FreeSettings())
    put_all(state, [a_wukong(number) for number in range(WUKONGS)])
    watch = next(watch for watch in load.watches if watch.resource.kind == "Pod")
    name = next(iter(sorted(state.objects["Node"]))).name
    load.reconcile(Key("", name), state, 0.0)

    def change(turn: int) -> None:
        for happened in state.apply("MODIFIED", a_pod(turn, turn, node=name)):
            for key in watch.keys(happened, state):
                load.reconcile(key, state, 0.0)

    return time_all([lambda turn=turn: change(turn) for turn in range(CHANGES)])  # type: ignore[misc]


def time_all(acts: Sequence[Callable[[], object]]) -> float:
    """Microseconds of processor time of each, the median."""
    seconds = []
    for act in acts:
        began = time.thread_time()
        act()
        seconds.append(time.thread_time() - began)
    return statistics.median(seconds) * 1e6


def ask(extender: Extender, pod: Pod) -> None:
    fleet = extender.fleet(0.0)
    rows = np.arange(fleet.size, dtype=np.intp)
    extender.filter(pod, fleet, rows, 0.0)
    extender.prioritize(pod, fleet, rows, 0.0)


def build_state(count: int) -> State:
    state = State()
    nodes = requests.compact({"kind": "NodeList", "items": [requests.a_node(number) for number in range(count)]})
    state.replace("Node", decode_objects(nodes))
    return state


def put_all(state: State, subjects: Sequence[Object]) -> None:
    for number, subject in enumerate(subjects):
        put(state, subject, number)


def put(state: State, subject: Object, version: int) -> None:
    subject.metadata.resource_version = str(version)
    state.apply("MODIFIED", subject)


def a_policy(number: int) -> PlacementPolicy:
    rules = [{"name": "label-match", "type": "score", "config": {"matchLabels": {"disk": f"ssd-{number}"}}}]
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": f"app-{number}"}},
        "scheduling": {"schedulingPolicy": {"rules": rules}, "resourceAffinity": AFFINITY},
    }
    return msgspec.convert({"metadata": {"name": f"p{number}", "namespace": "shop"}, "spec": spec}, PlacementPolicy)


def a_wukong(number: int, weight: int = 50) -> Wukong:
    preferred = {"preferredMemory": {"weight": weight, "threshold": "80%"}}
    spec = {"scheduling": {"resourceAffinity": {**AFFINITY, **preferred}}}
    return msgspec.convert({"metadata": {"name": f"w{number}", "namespace": "shop"}, "spec": spec}, Wukong)


def a_pod(number: int, app: int, node: str = "") -> Pod:
    labels = {"app": f"app-{app}", NAME_LABEL: f"w{app}"}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1m"}}}]
    return msgspec.convert(
        {
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": "shop", "labels": labels, "resourceVersion": "1"},
            "spec": {"containers": containers, "nodeName": node},
        },
        Pod,
    )
