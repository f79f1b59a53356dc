"""The loads of nodes that the bindings checker keeps change by change are those that a walk over all pods finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wukong.api.core import Pod
from wukong.embedded.checkers.node_loads import NodeLoad, NodeLoads
from wukong.embedded.world.objects import read
from wukong.ports import Document
from wukong.rules.resources import Amounts, add_all, placed_requests_of
from wukong.state import State

NODES = ("n1", "n2")


@st.composite
def containers(draw: st.DrawFn) -> Document:
    amounts = draw(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "250m", "3Gi"])))
    return {"name": "main", "resources": {"requests": amounts}}


SPECS = st.builds(
    lambda node, container: {"nodeName": node, "containers": [container]}, st.sampled_from(["", *NODES]), containers()
)
STATUSES = st.builds(
    lambda phase, resized: {
        "phase": phase,
        "containerStatuses": [{"name": "main", **({"resources": {"requests": resized}} if resized else {})}],
    },
    st.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
    st.sampled_from([None, None, {"cpu": "2"}]),
)
STEPS = st.tuples(
    st.sampled_from(["spec", "status", "status", "gone"]), st.sampled_from(["a", "b", "c"]), SPECS, STATUSES
)


def sum_up(pods: Iterable[Pod]) -> tuple[int, Amounts]:
    placed = list(pods)
    amounts = {name: amount for name, amount in add_all(map(placed_requests_of, placed)).items() if amount}
    return len(placed), amounts


def describe(load: NodeLoad) -> tuple[int, Amounts]:
    return load.pod_count, {name: amount for name, amount in load.amounts.items() if amount}


def take_in(state: State, documents: dict[str, Document], step: tuple[str, str, Any, Any], number: int) -> None:
    kind, name, spec, status = step
    document = documents.get(name)
    if kind == "gone":
        if document is not None:
            state.apply("DELETED", a_pod(documents.pop(name), number))
        return
    if document is None or kind == "spec":
        document = {"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec, "status": status}
    documents[name] = {**document, "status": status}
    state.apply("MODIFIED", a_pod(documents[name], number))


def a_pod(document: Document, number: int) -> Pod:
    pod = read("Pod", {**document, "metadata": {**document["metadata"], "resourceVersion": str(number)}})
    assert isinstance(pod, Pod)
    return pod


@given(st.lists(STEPS, max_size=14))
def test_loads_kept_change_by_change_are_those_of_a_walk(steps: list[tuple[str, str, Any, Any]]) -> None:
    state, documents = State(), dict[str, Document]()
    state.index_of(NodeLoads)
    fork = state.fork()
    for number, step in enumerate(steps, 1):
        take_in(state, documents, step, number)
        for pod in state.all(Pod):
            if not pod.spec.node_name:
                continue
            others = (
                other
                for other in state.all(Pod)
                if other.spec.node_name == pod.spec.node_name and not other.is_finished and other.key != pod.key
            )
            expected = sum_up(others)
            assert describe(state.index_of(NodeLoads).without(pod)) == expected
            assert describe(state.fork().index_of(NodeLoads).without(pod)) == expected
    assert len(fork.index_of(NodeLoads)._loads) == 0  # what happens to one side is nothing to the other
