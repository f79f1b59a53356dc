"""Whether every pod that one term selects is selected by another."""

from __future__ import annotations

from typing import Any

import pytest

from builders import selecting
from wukong.api.core import PodAffinityTerm
from wukong.api.meta import LabelSelector
from wukong.placement.term_conflicts import is_as_narrow, is_subset
from wukong.semantics.pod_affinity import compile_pod_term

WEB, BOTH, ANY = selecting(app="web"), selecting(app="web", tier="front"), LabelSelector()
ZONE, HOST, REGION = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "topology.kubernetes.io/region"


def a_term(selector: LabelSelector | None = WEB, namespaces: tuple[str, ...] = (), **more: Any) -> Any:
    term = PodAffinityTerm(topology_key=ZONE, label_selector=selector, namespaces=[*namespaces], **more)
    return compile_pod_term(term, "shop")


OF_TEAM: dict[str, Any] = {"namespace_selector": selecting(team="a")}
OF_ANOTHER: dict[str, Any] = {"namespace_selector": selecting(team="b")}
EVERYWHERE: dict[str, Any] = {"namespace_selector": ANY}


@pytest.mark.parametrize(
    ("term", "other", "expected"),
    [
        (a_term(), a_term(), True),
        (a_term(BOTH), a_term(WEB), True),
        (a_term(WEB), a_term(BOTH), False),
        (a_term(WEB), a_term(ANY), True),
        (a_term(None), a_term(), False),
        (a_term(), a_term(None), False),
        (a_term(namespaces=("shop",)), a_term(namespaces=("shop", "bank")), True),
        (a_term(namespaces=("shop", "bank")), a_term(namespaces=("shop",)), False),
        (a_term(namespaces=("shop", "bank")), a_term(**EVERYWHERE), True),
        (a_term(**OF_TEAM), a_term(**EVERYWHERE), True),
        (a_term(**OF_TEAM), a_term(**OF_TEAM), True),
        (a_term(**OF_TEAM), a_term(**OF_ANOTHER), False),
        (a_term(**OF_TEAM), a_term(), False),
        (a_term(namespaces=("bank",)), a_term(namespaces=("bank",), **OF_TEAM), True),
        (a_term(**EVERYWHERE), a_term(namespaces=("shop",)), False),
    ],
)
def test_a_term_that_asks_for_all_that_the_other_asks_for_selects_no_more(
    term: Any, other: Any, expected: bool
) -> None:
    assert is_subset(term, other) is expected


@pytest.mark.parametrize(
    ("key", "other", "expected"),
    [
        (ZONE, ZONE, True),
        (HOST, ZONE, True),
        (ZONE, HOST, False),
        (HOST, REGION, True),
        (REGION, ZONE, False),
        ("rack", "rack", True),
        ("rack", ZONE, False),
        (HOST, "rack", False),
    ],
)
def test_a_host_is_within_a_zone_and_a_zone_within_a_region(key: str, other: str, expected: bool) -> None:
    assert is_as_narrow(key, other) is expected
