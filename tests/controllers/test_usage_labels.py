"""Usage labels move by steps, rarely, and vanish when nobody stands behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_node, a_usage
from wukong.api.usage import NodeUsage
from wukong.controllers.load.usage_labels import KINDS, Settings, plan_labels, usage_of_labels

CPU = "usage.novasphere.dev/cpu"
SETTINGS = Settings()


@pytest.mark.parametrize(
    ("current", "percent", "expected"),
    [
        (None, 0.0, "0"),
        (None, 37.2, "35"),
        (None, 99.9, "95"),
        (None, 100.0, "100"),
        (None, 250.0, "100"),
        (None, -3.0, "0"),
        ("35", 39.9, "35"),
        ("35", 40.5, "35"),  # within the slack
        ("35", 41.5, "40"),
        ("35", 34.2, "35"),
        ("35", 33.0, "30"),
        ("36", 36.0, "35"),  # not a step of ours
        ("busy", 36.0, "35"),
        ("²", 36.0, "35"),  # a digit, and no number
        ("9" * 5000, 36.0, "35"),
        ("35", None, None),
        ("35", float("nan"), None),
        (None, float("inf"), "100"),
    ],
)
def test_a_label_is_the_step_the_measurement_lies_in(
    current: str | None, percent: float | None, expected: str | None
) -> None:
    labels = {} if current is None else {CPU: current}
    found = plan_labels(labels, a_usage("n1", 100.0, cpu=percent), None, SETTINGS, now=100.0)
    assert {**labels, **found.labels}.get(CPU) == expected


@pytest.mark.parametrize(
    ("label", "percent"),
    [
        ("0", 0.0),
        ("35", 35.0),
        ("100", 100.0),
        ("101", None),
        ("999", None),
        ("0100", None),  # nobody of ours writes it so
        ("", None),
        ("busy", None),
        ("-5", None),
        ("5.5", None),
        ("²", None),
        ("٣", None),  # a three that int() would read
        ("9" * 5000, None),
    ],
)
def test_a_label_is_read_back_as_the_percent_that_it_says_if_we_could_have_written_it(
    label: str, percent: float | None
) -> None:
    node = a_node("n1", labels={CPU: label, "usage.novasphere.dev/storage": "10"})
    assert usage_of_labels([node], now=7.0) == [a_usage("n1", 7.0, cpu=percent, storage=10.0)]


def test_nodes_without_a_usage_label_have_no_usage() -> None:
    memory = a_node("n2", labels={"usage.novasphere.dev/memory": "60", "load.example.com/cpu": "5"})
    assert usage_of_labels([a_node("n1"), memory, a_node("n3", labels={CPU: "busy"})], now=7.0) == [
        a_usage("n2", 7.0, memory=60.0)
    ]


def test_a_change_waits_until_the_node_has_been_quiet() -> None:
    usage = a_usage("n1", 100.0, cpu=80.0)
    early = plan_labels({CPU: "10"}, usage, 90.0, SETTINGS, now=100.0)
    assert early.labels == {}
    assert early.again_after == 20.0
    assert plan_labels({CPU: "10"}, usage, 70.0, SETTINGS, now=100.0).labels == {CPU: "80"}


@pytest.mark.parametrize("usage", [None, a_usage("n1", 0.0, cpu=50.0)])
def test_stale_labels_are_removed_at_once_and_only_ours(usage: NodeUsage | None) -> None:
    found = plan_labels({CPU: "50", "team": "a"}, usage, 179.0, SETTINGS, now=180.0)
    assert found.labels == {CPU: None}
    assert found.again_after is None


def test_a_fresh_measurement_is_looked_at_again_when_it_would_be_stale() -> None:
    assert plan_labels({CPU: "50"}, a_usage("n1", 100.0, cpu=52.0), None, SETTINGS, now=130.0).again_after == 150.0


def test_the_prefix_is_the_users() -> None:
    found = plan_labels({}, a_usage("n1", 0.0, memory=12.0), None, Settings(prefix="load.example.com"), now=1.0)
    assert found.labels == {"load.example.com/memory": "10"}


@given(st.floats(0, 100), st.floats(0, 100))
def test_once_set_a_label_stays_for_the_same_measurement(first: float, second: float) -> None:
    settings = Settings()
    labels: dict[str, str] = {}
    for percent in (first, second, second):
        usage = a_usage("n1", 0.0, cpu=percent, memory=percent, storage=percent)
        before = dict(labels)
        labels.update(
            {key: value for key, value in plan_labels(labels, usage, None, settings, 0.0).labels.items() if value}
        )
    assert labels == before
    assert all(abs(int(labels[settings.key(kind)]) - second) <= settings.step + settings.slack for kind in KINDS)
