"""Templates remember what pods ask for by the parts of their specs: it is what each pod asks for by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.core import Pod, TopologySpreadConstraint
from wukong.engine import template
from wukong.engine.requests import read_requests
from wukong.engine.template import TemplateTable

replace = msgspec.structs.replace
QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "250m", "3Gi", "0"]), max_size=2
)
REQUESTS = st.builds(lambda amounts: {"requests": amounts}, QUANTITIES)
CONTAINERS = st.builds(lambda requests: {"name": "main", "resources": requests}, REQUESTS)
SPECS = st.builds(
    lambda containers, more: {"containers": containers, **more},
    st.lists(CONTAINERS, min_size=1, max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "resources": REQUESTS,
            "overhead": QUANTITIES,
            "initContainers": st.lists(CONTAINERS, max_size=1),
        },
    ),
)
STATUSES = st.builds(
    lambda statuses, conditions: {"containerStatuses": statuses, "conditions": conditions},
    st.lists(st.builds(lambda requests: {"name": "main", "resources": requests}, REQUESTS), max_size=1),
    st.sampled_from([[], [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]]),
)


def a_pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return msgspec.convert({"metadata": {"name": "a"}, "spec": spec, "status": status or {}}, Pod)


@given(st.lists(st.tuples(SPECS, STATUSES), min_size=1, max_size=5))
def test_a_template_asks_for_what_its_pod_does(kinds: list[tuple[Any, Any]]) -> None:
    table = TemplateTable()
    for spec, status in kinds:
        pod = a_pod(spec)
        labelled = replace(pod, metadata=replace(pod.metadata, labels={"app": "a"}))  # shares its whole spec
        resized = replace(labelled, status=a_pod(spec, status).status)
        other = replace(labelled, spec=replace(pod.spec, containers=a_pod(kinds[0][0]).spec.containers))
        for subject in (pod, labelled, resized, other, labelled):
            assert table.intern(subject).requests == read_requests(subject)


def test_no_more_is_remembered_than_it_says() -> None:
    table = TemplateTable()
    for number in range(template._MOST_REQUESTS + 10):
        table.intern(a_pod({"containers": [], "priority": number}))
    assert len(table._requests) <= template._MOST_REQUESTS


def test_pods_that_share_their_parts_share_their_template_unless_a_plain_value_differs() -> None:
    table, pod = TemplateTable(), a_pod({"containers": [{"name": "main"}], "priority": 1})
    renamed = replace(pod, metadata=replace(pod.metadata, name="b"), spec=replace(pod.spec, node_name="n1"))
    assert table.intern(renamed) is table.intern(pod)
    for other in (
        replace(pod, metadata=replace(pod.metadata, namespace="other")),
        replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")),
        replace(pod, spec=replace(pod.spec, priority=2)),
        replace(pod, spec=replace(pod.spec, preemption_policy="Never")),
    ):
        assert table.intern(other) is not table.intern(pod)


def test_a_template_that_was_forgotten_is_not_given_again() -> None:
    table, pod = TemplateTable(), a_pod({"containers": []})
    before = table.intern(pod)
    table.keep(())
    assert table.intern(pod).number != before.number


def test_no_more_pods_are_remembered_by_their_parts_than_it_says() -> None:
    table = TemplateTable()
    for number in range(template._MOST_PARTS + 10):
        table.intern(a_pod({"containers": [], "priority": number}))
    assert len(table._by_parts) <= template._MOST_PARTS


@pytest.mark.parametrize("skew", [2**62, -(2**62)])
def test_a_skew_that_no_api_server_accepts_is_taken_for_the_largest_so_that_sums_do_not_overflow(skew: int) -> None:
    constraint = TopologySpreadConstraint(max_skew=skew, topology_key="zone", when_unsatisfiable="ScheduleAnyway")
    (spread,) = template.compile_spreads([constraint], {}, "ScheduleAnyway")
    assert abs(spread.max_skew) == 2**31 - 1
