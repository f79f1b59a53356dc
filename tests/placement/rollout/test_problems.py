"""What is wrong with a Rollout is said, with its place; what is right is accepted; nonsense never fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts import REQUIRED, a_rollout, a_template, blue_green, canary
from wukong.api.rollout import HASH, CanaryStep, Rollout
from wukong.placement.rollout import CanaryTarget, find_rollout_problems, find_target
from wukong.ports import Document


def problems_of(document: Document) -> list[str]:
    return find_rollout_problems(msgspec.convert(document, Rollout))


GOOD = [
    blue_green(),
    {"bluegreen": {"activeService": "web", "antiAffinity": REQUIRED}},
    canary(),
    canary({"setWeight": 10}, {"pause": {}}, {"setReplicas": 3}, {"pause": {"duration": "10m"}}, maxSurge=1),
]


@pytest.mark.parametrize("strategy", GOOD)
def test_a_sensible_rollout_has_no_problem(strategy: Document) -> None:
    assert problems_of(a_rollout(strategy)) == []


BAD: list[tuple[str, Document]] = [
    ("$.spec.strategy:", a_rollout({})),
    ("$.spec.strategy:", a_rollout({**blue_green(), **canary()})),
    ("$.spec.strategy.blueGreen.activeService:", a_rollout({"blueGreen": {}})),
    ("$.spec.strategy.blueGreen.previewService:", a_rollout(blue_green(previewService="web"))),
    ("$.spec.strategy.blueGreen.onDeadlock:", a_rollout(blue_green(onDeadlock="Panic"))),
    ("$.spec.strategy.blueGreen.antiAffinity:", a_rollout(blue_green(antiAffinity={}))),
    (
        "$.spec.strategy.blueGreen.antiAffinity.preferredDuringSchedulingIgnoredDuringExecution.weight:",
        a_rollout(blue_green(antiAffinity={"preferredDuringSchedulingIgnoredDuringExecution": {"weight": 101}})),
    ),
    ("$.spec.strategy.canary.steps[0]:", a_rollout(canary({}))),
    ("$.spec.strategy.canary.steps[0].setWeight:", a_rollout(canary({"setWeight": 101}))),
    ("$.spec.strategy.canary.steps[0].pause.duration:", a_rollout(canary({"pause": {"duration": "soon"}}))),
    ("$.spec.strategy.canary.maxSurge:", a_rollout(canary(maxSurge="many"))),
    ("$.spec.replicas:", a_rollout(canary(), replicas=-1)),
    ("$.spec.selector:", a_rollout(canary(), selector={})),
    ("$.spec.template:", a_rollout(canary(), template={"metadata": "x"})),
    ("$.spec.template.spec.containers:", a_rollout(canary(), template={"metadata": {"labels": {"app": "web"}}})),
    ("$.spec.template.metadata.labels:", a_rollout(canary(), selector={"matchLabels": {"app": "db"}})),
    ("$.spec.template.spec.restartPolicy:", a_rollout(canary(), template=a_template(restartPolicy="Never"))),
]


@pytest.mark.parametrize(("path", "document"), BAD)
def test_a_problem_names_its_place(path: str, document: Document) -> None:
    problems = problems_of(document)
    assert len(problems) == 1
    assert problems[0].startswith(f"{path} ")


def test_the_label_of_versions_is_not_the_authors_to_set() -> None:
    template = a_template()
    template["metadata"]["labels"][HASH] = "x"
    assert HASH in problems_of(a_rollout(canary(), template=template))[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(JSON, st.integers(), st.text())
def test_nonsense_is_said_and_never_raised(template: Any, number: int, text: str) -> None:
    whole = template if isinstance(template, dict) else {"spec": template}
    strategy = canary({"setWeight": number}, {"pause": {"duration": text}}, maxSurge=text)
    document = a_rollout(strategy, template=whole, replicas=number)
    try:
        rollout = msgspec.convert(document, Rollout)
    except msgspec.ValidationError:
        return
    assert find_rollout_problems(rollout)


STEPS = [CanaryStep(set_weight=25), CanaryStep(set_replicas=6), CanaryStep(set_weight=100), CanaryStep(set_weight=1)]


@pytest.mark.parametrize(
    ("step", "replicas", "surge", "target"),
    [
        (0, 8, 0, CanaryTarget(2, 6)),
        (0, 1, 1, CanaryTarget(1, 1)),
        (0, 1, 0, CanaryTarget(1, 0)),
        (1, 8, 0, CanaryTarget(6, 2)),
        (1, 4, 0, CanaryTarget(4, 0)),
        (2, 8, 0, CanaryTarget(8, 0)),
        (3, 8, 0, CanaryTarget(1, 7)),
        (4, 8, 0, CanaryTarget(8, 0)),
    ],
)
def test_a_step_sets_the_sizes_of_both_sides(step: int, replicas: int, surge: int, target: CanaryTarget) -> None:
    assert find_target(STEPS, step, replicas, surge) == target
