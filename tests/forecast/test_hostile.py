"""Whatever a manifest or a cluster says: what reads it before anybody has checked it never fails."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wukong.cli.views.chart import COLUMNS, choose_stretch, level_of, split_evenly
from wukong.cli.views.plan import format_field
from wukong.embedded.store.documents import is_same_json
from wukong.forecast.changes import compare_documents
from wukong.forecast.start_times import find_probe_delay, seconds_to_ready
from wukong.semantics.start_time import MOST_SECONDS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.just("name"), inner, max_size=4)
    ),
    max_leaves=12,
)
DOCUMENTS = st.fixed_dictionaries(
    {"metadata": st.dictionaries(st.text(max_size=5), VALUES, max_size=3), "spec": VALUES}
)


@given(DOCUMENTS, DOCUMENTS)
def test_documents_are_compared_whatever_they_hold(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert list(compare_documents(before, before)) == []
    for field in compare_documents(before, after):
        assert not is_same_json(field.before, field.after)
        assert len(format_field(field)) < 1000


@given(VALUES, VALUES)
def test_times_and_delays_are_read_whatever_they_are(condition: Any, probe: Any) -> None:
    seconds_to_ready({"status": {"conditions": [condition]}})
    containers = [condition, {"readinessProbe": probe}, {"startupProbe": {"initialDelaySeconds": probe}}]
    delay = find_probe_delay({"spec": {"template": {"spec": {"containers": containers}}}})
    assert 0 <= delay <= 2 * MOST_SECONDS


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**6)), min_size=1, max_size=30), st.booleans())
def test_a_chart_has_all_of_a_history_in_its_columns(points: list[tuple[float, int]], is_stuck: bool) -> None:
    history = sorted(points)
    start, end = choose_stretch([history], is_stuck=is_stuck)
    assert 0 <= start <= end
    if end > start:
        buckets = split_evenly(history, start, end, COLUMNS)
        assert len(buckets) == COLUMNS
        assert {number for numbers in buckets for number in numbers} == {number for _, number in history}
        assert buckets[-1][-1] == history[-1][1]
        top = max(number for _, number in history)
        assert all(0 <= level_of(number, top) <= 8 for numbers in buckets for number in numbers)
        assert level_of(top, top) == (8 if top else 0)
