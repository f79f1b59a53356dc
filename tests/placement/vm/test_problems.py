"""What is wrong with a Wukong is said with its path, whoever else would say so too."""

from __future__ import annotations

import msgspec
import pytest

from live.bad_wukongs import BAD_WUKONGS, CEL, CONDITION, KUBEVIRT, BadWukong, bad_wukongs_of
from wukong.api.vm import Wukong
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import VmSettings, find_wukong_problems


def read(bad: BadWukong) -> Wukong:
    return msgspec.convert({"metadata": {"name": bad.name}, "spec": bad.spec}, Wukong)


def is_readable(bad: BadWukong) -> bool:
    try:
        read(bad)
    except msgspec.ValidationError:
        return False
    return True


def test_there_are_at_least_sixty_bad_wukongs_with_names_of_their_own() -> None:
    assert len(BAD_WUKONGS) >= 60
    assert len({bad.name for bad in BAD_WUKONGS}) == len(BAD_WUKONGS)


@pytest.mark.parametrize("bad", bad_wukongs_of(CONDITION), ids=lambda bad: bad.name)
def test_what_the_api_server_cannot_know_is_found_with_its_path(bad: BadWukong) -> None:
    problems = find_wukong_problems(read(bad), BUILT_IN)
    assert [problem for problem in problems if problem.startswith(bad.path) and bad.says in problem], problems


# Names and texts whose form is a pattern of the schema alone: KubeVirt would say so, were the CRD not there.
ONLY_PATTERNS = {"claim-name", "scheduler-name"}


@pytest.mark.parametrize("bad", [bad for bad in bad_wukongs_of(CEL) if is_readable(bad)], ids=lambda bad: bad.name)
def test_what_the_crd_refuses_is_found_without_it_too(bad: BadWukong) -> None:
    problems = find_wukong_problems(read(bad), BUILT_IN)
    assert bad.name in ONLY_PATTERNS or any(problem.startswith(f"$.{bad.path}") for problem in problems), problems


@pytest.mark.parametrize("bad", bad_wukongs_of(KUBEVIRT), ids=lambda bad: bad.name)
def test_what_only_kubevirt_knows_is_not_ours_to_say(bad: BadWukong) -> None:
    assert find_wukong_problems(read(bad), BUILT_IN) == []


def test_too_many_terms_are_no_problem_where_the_extender_judges() -> None:
    (bad,) = (bad for bad in BAD_WUKONGS if bad.name == "too-many-terms")
    assert find_wukong_problems(read(bad), BUILT_IN, VmSettings(resource_affinity="extender")) == []


def test_what_is_nested_too_deeply_is_refused_before_anybody_walks_it() -> None:
    template: object = 1
    for _ in range(900):
        template = {"a": template}
    wukong = msgspec.convert({"metadata": {"name": "deep"}, "spec": {"vmTemplate": template}}, Wukong)
    assert find_wukong_problems(wukong, BUILT_IN) == [
        "$.spec.vmTemplate: expected at most 32 levels, got more. Make it simpler."
    ]
