"""What Prometheus reads: names and labels are an interface, and each is in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from wukong.runtime.metrics import CONTENT_TYPE, ExtenderMetrics, Metrics

DOCS = Path(__file__).parents[2] / "docs"
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "wukong_reconcile_seconds": ("histogram", ("controller",)),
    "wukong_actions_total": ("counter", ("action", "result")),
    "wukong_gate_total": ("counter", ("act", "result")),
    "wukong_queue_length": ("gauge", ()),
    "wukong_leader": ("gauge", ()),
    "wukong_mirror_objects": ("gauge", ("kind",)),
    "wukong_unreadable_objects": ("gauge", ("kind",)),
    "wukong_mirror_age_seconds": ("gauge", ("kind",)),
    "wukong_watch_restarts_total": ("counter", ("kind",)),
    "wukong_server_connections": ("gauge", ("server",)),
    "wukong_server_connections_dropped_total": ("counter", ("server",)),
    "wukong_meter_failures_total": ("counter", ()),
    "wukong_meter_samples_skipped_total": ("counter", ()),
    "wukong_extender_seconds": ("histogram", ("verb",)),
    "wukong_extender_requests_total": ("counter", ("verb", "code")),
}


def test_every_metric_has_its_name_and_labels() -> None:
    metrics = Metrics()
    extender = ExtenderMetrics(metrics)
    families = {**vars(metrics), **vars(extender)}
    described = {
        f"{family._name}_total" if family._type == "counter" else family._name: (family._type, family._labelnames)
        for family in families.values()
        if hasattr(family, "_labelnames")
    }
    assert described == EXPECTED
    text = metrics.text().decode()
    assert all(f"# TYPE {name} {kind}" in text for name, (kind, _) in EXPECTED.items())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_metric_is_in_the_documents(name: str) -> None:
    assert any(f"`{name}" in (DOCS / file).read_text("utf-8") for file in ("operations.md", "run.md"))


def test_what_happens_is_counted_under_its_labels() -> None:
    metrics = Metrics()
    extender = ExtenderMetrics(metrics)
    metrics.count_gate("evict", "held")
    extender.record_answer("filter", 200, 0.03)
    lines = metrics.text().decode().splitlines()
    assert 'wukong_gate_total{act="evict",result="held"} 1.0' in lines
    assert 'wukong_extender_requests_total{code="200",verb="filter"} 1.0' in lines
    assert 'wukong_extender_seconds_bucket{le="0.025",verb="filter"} 0.0' in lines
    assert 'wukong_extender_seconds_bucket{le="0.05",verb="filter"} 1.0' in lines
    assert CONTENT_TYPE == "text/plain; version=0.0.4"


def test_buckets_are_where_decisions_and_answers_are() -> None:
    metrics = Metrics()
    extender = ExtenderMetrics(metrics)
    metrics.reconcile_seconds.labels("load").observe(0.0)
    extender.record_answer("filter", 200, 0.0)
    lines = metrics.text().decode().splitlines()

    def bounds(name: str) -> list[float]:
        return [float(line.split('le="')[1].split('"')[0]) for line in lines if line.startswith(f"{name}_bucket")]

    infinity = float("inf")
    assert bounds("wukong_reconcile_seconds") == [0.0001, 0.001, 0.01, 0.1, 0.5, 1, 5, infinity]
    assert bounds("wukong_extender_seconds") == [
        *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, infinity)
    ]
