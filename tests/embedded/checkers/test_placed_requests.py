"""What the bindings checker remembers of pods is what the rules say of each, whoever shares parts with whom."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.core import Pod
from wukong.embedded.checkers import placed_requests
from wukong.embedded.checkers.placed_requests import PlacedRequests
from wukong.rules.resources import placed_requests_of

replace = msgspec.structs.replace
QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "250m", "3Gi", "0"]), max_size=2
)
REQUESTS = st.builds(lambda amounts: {"requests": amounts}, QUANTITIES)
CONTAINERS = st.builds(lambda requests: {"name": "main", "resources": requests}, REQUESTS)
INIT_CONTAINERS = st.builds(
    lambda requests, policy: {"name": "first", "resources": requests, **policy},
    REQUESTS,
    st.sampled_from([{}, {"restartPolicy": "Always"}]),
)
SPECS = st.builds(
    lambda containers, init, more: {"containers": containers, "initContainers": init, **more},
    st.lists(CONTAINERS, min_size=1, max_size=2),
    st.lists(INIT_CONTAINERS, max_size=2),
    st.fixed_dictionaries({}, optional={"resources": REQUESTS, "overhead": QUANTITIES}),
)
RESIZES = st.fixed_dictionaries(
    {
        "containerStatuses": st.lists(
            st.builds(lambda requests: {"name": "main", "resources": requests}, REQUESTS), max_size=1
        ),
        "initContainerStatuses": st.lists(
            st.builds(lambda requests: {"name": "first", "resources": requests}, REQUESTS), max_size=1
        ),
        "conditions": st.sampled_from(
            [[], [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]],
        ),
    }
)


def a_pod(spec: dict[str, Any], status: dict[str, Any]) -> Pod:
    return msgspec.convert({"metadata": {"name": "a"}, "spec": spec, "status": status}, Pod)


@given(st.lists(st.tuples(SPECS, RESIZES, RESIZES), min_size=1, max_size=5))
def test_what_is_remembered_is_what_the_rules_say(kinds: list[tuple[Any, Any, Any]]) -> None:
    requests = PlacedRequests()
    for spec, status, later in kinds:
        pod = a_pod(spec, {})
        moved = replace(pod, spec=replace(pod.spec, node_name="n"))  # shares what its spec holds
        resized = replace(moved, status=a_pod(spec, status).status)
        again = replace(moved, status=a_pod(spec, later).status)
        other = replace(pod, spec=replace(pod.spec, containers=a_pod(kinds[0][0], {}).spec.containers))
        for subject in (pod, moved, resized, again, moved, other):
            assert requests.of(subject) == placed_requests_of(subject)


def test_pods_that_share_their_parts_are_worked_out_once() -> None:
    requests = PlacedRequests()
    pod = a_pod({"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}, {})
    moved = replace(pod, spec=replace(pod.spec, node_name="n"))
    assert requests.of(pod) is requests.of(moved)
    assert requests.of(a_pod({"containers": []}, {})) is not requests.of(pod)


def test_no_more_is_remembered_than_it_says() -> None:
    requests = PlacedRequests()
    for _ in range(placed_requests.MOST + 10):
        requests.of(a_pod({"containers": []}, {}))
    assert len(requests._by_parts) <= placed_requests.MOST
