"""The tables of the hollow kubelets: stages over time, annotations over defaults. No control plane is needed."""

from math import inf

import pytest

from testbed.behaviour import (
    FAILING,
    PULL_FAILED,
    PULLING,
    READY,
    STARTING,
    WARMING,
    BadAnnotationError,
    Behaviour,
    Stage,
    exited,
    is_set,
    may_exit,
    overridden,
    stage_at,
    timeline,
)

TABLE = Behaviour(pull_seconds=2, start_seconds=1, ready_seconds=4)
PREFIXES = ("sim.novasphere.dev/", "testbed.wukong/")  # the new one, and the former one


@pytest.mark.parametrize(
    ("age", "stage", "left"),
    [(0, PULLING, 2), (1.5, PULLING, 0.5), (2, STARTING, 1), (3, WARMING, 4), (7, READY, inf), (900, READY, inf)],
)
def test_a_pod_is_pulled_started_warmed_up_and_ready(age: float, stage: Stage, left: float) -> None:
    assert stage_at(timeline(TABLE, may_exit=False), age) == (stage, left)


@pytest.mark.parametrize(
    ("annotations", "stage"),
    [
        ({"never-ready": "true"}, WARMING),
        ({"unready-after-seconds": "5"}, FAILING),
        ({"pull-fails": "true"}, PULL_FAILED),
        ({"pull-seconds": "1000"}, PULLING),
        ({"run-seconds": "10"}, exited(0)),
        ({"run-seconds": "10", "exit-code": "3"}, exited(3)),
        ({"run-seconds": "10", "never-ready": "true"}, exited(0)),
    ],
)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_annotation_changes_where_a_pod_of_900_seconds_is(
    annotations: dict[str, str], stage: Stage, prefix: str
) -> None:
    table = overridden(TABLE, {f"{prefix}{name}": text for name, text in annotations.items()})
    assert stage_at(timeline(table, may_exit=True), 900)[0] == stage


def test_a_container_that_would_be_restarted_runs_on() -> None:
    table = Behaviour(run_seconds=1, exit_code=1)
    rows = timeline(table, may_exit=may_exit("Always", 1))
    assert stage_at(rows, 900)[0] == READY
    assert [may_exit("Never", 1), may_exit("OnFailure", 1), may_exit("OnFailure", 0)] == [True, False, True]


@pytest.mark.parametrize("node_prefix", PREFIXES)
@pytest.mark.parametrize("pod_prefix", PREFIXES)
def test_the_pod_says_more_than_the_node_and_the_node_more_than_the_default(node_prefix: str, pod_prefix: str) -> None:
    node = {f"{node_prefix}pull-seconds": "7", f"{node_prefix}ready-seconds": "8", f"{node_prefix}silent": "true"}
    pod = {f"{pod_prefix}pull-seconds": "9", "example.com/other": "x"}
    table = overridden(TABLE, node, None, pod)
    assert (table.pull_seconds, table.ready_seconds, table.start_seconds) == (9, 8, 1)


@pytest.mark.parametrize("order", [PREFIXES, PREFIXES[::-1]])
def test_of_two_prefixes_the_new_one_counts(order: tuple[str, str]) -> None:
    texts = {PREFIXES[0]: "5", PREFIXES[1]: "nonsense"}
    assert overridden(TABLE, {f"{prefix}pull-seconds": texts[prefix] for prefix in order}).pull_seconds == 5
    flags = {PREFIXES[0]: "false", PREFIXES[1]: "true"}
    assert not is_set("silent", {f"{prefix}silent": flags[prefix] for prefix in order})


def test_a_node_is_hollow_or_silent_by_the_new_name_and_by_the_former_one() -> None:
    assert [is_set(name, {f"{prefix}{name}": "true"}) for name in ("hollow", "silent") for prefix in PREFIXES] == [
        True
    ] * 4
    assert not is_set("hollow", {"example.com/hollow": "true"})
    assert not is_set("hollow", None)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pull-seconds", "fast", 'pull-seconds: expected seconds such as "2.5", got "fast"'),
        ("never-ready", "maybe", 'never-ready: expected "true" or "false", got "maybe"'),
        ("exit-code", "1.5", 'exit-code: expected an integer such as "1", got "1.5"'),
        ("redy-seconds", "1", "redy-seconds is unknown. Did you mean sim.novasphere.dev/ready-seconds?"),
    ],
)
def test_an_annotation_that_makes_no_sense_is_named_with_what_was_expected(
    name: str, text: str, message: str, prefix: str
) -> None:
    with pytest.raises(BadAnnotationError) as raised:
        overridden(TABLE, {f"{prefix}{name}": text})
    assert str(raised.value) == f"{prefix}{message}"
