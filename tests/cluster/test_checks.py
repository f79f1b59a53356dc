"""What is wrong with objects of a file: only what is wrong is named, and all of it, with its path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_node, a_pod
from wukong.api.core import Pod, PodSpec, Volume
from wukong.api.meta import ObjectMeta
from wukong.api.quantity import LARGEST_AMOUNT
from wukong.cluster.checks import (
    _find_bad_quantities,
    _has_only_good_amounts,
    _pod_quantities,
    find_oversized_numbers,
    problems_of,
)

LARGEST = LARGEST_AMOUNT - 1


def places(problems: list[str]) -> list[str]:
    return [problem.partition(": ")[0] for problem in problems]


@pytest.mark.parametrize(
    ("number", "is_oversized"),
    [
        (0, False),
        (-1, False),
        (2**63 - 1, False),
        (2**63, True),
        (-(2**63), False),
        (-(2**63) - 1, True),
    ],
)
def test_only_a_number_beyond_64_bits_is_oversized(number: int, is_oversized: bool) -> None:
    pod = a_pod(priority=number)
    pod.spec.host_network = True  # a boolean is no number
    expected = f"$.spec.priority: expected a number of at most 64 bits, got {number}. Mend the number."
    assert list(find_oversized_numbers(pod)) == ([expected] if is_oversized else [])


def test_every_oversized_number_is_named_with_its_path_and_no_other() -> None:
    pod = a_pod(priority=10**30, host_port=2**70)
    pod.spec.volumes = [Volume(name="scratch", csi={"a b": [1, 2**64]})]
    assert places(list(find_oversized_numbers(pod))) == [
        "$.spec.containers[0].ports[0].containerPort",
        "$.spec.containers[0].ports[0].hostPort",
        "$.spec.priority",
        '$.spec.volumes[0].csi["a b"][1]',
    ]


@pytest.mark.parametrize(
    ("memory", "is_fine"),
    [
        (str(LARGEST), True),
        (str(LARGEST + 1), False),
        (f"-{LARGEST}", True),
        (f"-{LARGEST + 1}", False),
        ("1Gi", True),
        ("much", False),
    ],
)
def test_a_quantity_is_one_and_within_what_a_machine_can_have(memory: str, is_fine: bool) -> None:
    pod_places = places(problems_of(a_pod(memory=memory), thorough=True, is_stored=False))
    assert pod_places == ([] if is_fine else ["$.spec.containers[0].resources.requests.memory"])
    node_places = places(problems_of(a_node("n", memory=memory), thorough=True))
    assert set(node_places) == (set() if is_fine else {"$.status.allocatable.memory", "$.status.capacity.memory"})
    assert problems_of(a_pod(memory=memory), thorough=False) == []  # an equal one was checked before


def test_an_object_needs_a_name() -> None:
    nameless = Pod(metadata=ObjectMeta(), spec=PodSpec())
    for thorough in (True, False):
        assert places(problems_of(nameless, thorough=thorough)) == ["$.metadata.name"]


QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "250m", "-1", "1e400", "x", "", 3, 0.5]), max_size=2
)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": QUANTITIES, "limits": QUANTITIES})
CONTAINERS = st.lists(st.builds(lambda resources: {"name": "a", "resources": resources}, RESOURCES), max_size=2)
STATUSES = st.lists(
    st.builds(
        lambda resources, allocated: {"name": "a", "allocatedResources": allocated, **resources},
        st.fixed_dictionaries({}, optional={"resources": st.builds(lambda amounts: {"requests": amounts}, QUANTITIES)}),
        QUANTITIES,
    ),
    max_size=1,
)


@given(
    st.fixed_dictionaries({"containers": CONTAINERS, "initContainers": CONTAINERS}, optional={"overhead": QUANTITIES}),
    STATUSES,
)
def test_what_is_surely_good_has_no_bad_quantity(spec: dict[str, Any], statuses: list[Any]) -> None:
    pod = msgspec.convert({"metadata": {"name": "a"}, "spec": spec, "status": {"containerStatuses": statuses}}, Pod)
    bad = [problem for path, amounts in _pod_quantities(pod) for problem in _find_bad_quantities(amounts, path, None)]
    assert not (_has_only_good_amounts(pod) and bad)
    assert problems_of(pod, thorough=True) == bad
