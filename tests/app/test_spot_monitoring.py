"""The alerts and the dashboard of deploy/monitoring: every metric and label in them is one that the component has."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import prometheus as prometheus_program
from testbed.pytest_plugin import RunPrometheus
from wukong.app.components.spot.meter import SpotMeter
from wukong.controllers.spot.evictions import BLOCKS, SpotEvictions
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.ways import OUR_WAYS
from wukong.placement.rules import BUILT_IN
from wukong.runtime import Metrics

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
ALERTS, DASHBOARD = FOLDER / "spot-alerts.yaml", FOLDER / "spot-dashboard.json"
VALUES = {"by": set(BLOCKS), "way": set(OUR_WAYS), "course": {course.value for course in Course}}
OF_PROMETHEUS = {"le", "instance"}  # labels that it adds itself


class Clock:
    def now(self) -> float:
        return 0.0


def list_known() -> dict[str, set[str]]:
    """The labels of each series that the component has."""
    metrics = Metrics()
    SpotMeter(metrics, Clock(), SpotEvictions(BUILT_IN))
    known: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            known.setdefault(sample.name, set()).update(sample.labels)
    known["wukong_spot_notices_total"] = {"course"}  # has a series from the first notice on
    return known


def list_rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]]


def list_panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return panels


def list_expressions() -> list[str]:
    targets = (target for panel in list_panels() for target in panel["targets"])
    return [*(rule["expr"] for rule in list_rules()), *(target["expr"] for target in targets)]


def find_unknown(expression: str, known: dict[str, set[str]]) -> Iterator[str]:
    """What of an expression no series has: metrics, labels and their values."""
    names = re.findall(r"\bwukong_\w+", expression)
    if not names:
        yield f"no metric of ours: {expression}"
    for name in names:
        if name not in known:
            yield name
    labels = set().union(*(known.get(name, set()) for name in names)) | OF_PROMETHEUS
    for grouping in re.findall(r"\bby \(([^)]*)\)", expression):
        yield from (label for label in re.split(r",\s*", grouping) if label not in labels)
    for label, value in re.findall(r'(\w+)="([^"]*)"', expression):
        if label not in labels or value not in VALUES[label]:
            yield f'{label}="{value}"'


@pytest.mark.parametrize("expression", list_expressions())
def test_every_metric_label_and_value_is_one_that_the_component_has(expression: str) -> None:
    assert list(find_unknown(expression, list_known())) == []


@pytest.mark.parametrize(
    ("expression", "unknown"),
    [
        ("max(wukong_spot_lost_total)", ["wukong_spot_lost_total"]),
        ("max by (pod) (wukong_spot_blocked_pods)", ["pod"]),
        ('wukong_spot_blocked_pods{by="luck"}', ['by="luck"']),
        ("up", ["no metric of ours: up"]),
    ],
)
def test_the_check_finds_what_nobody_has(expression: str, unknown: list[str]) -> None:
    assert list(find_unknown(expression, list_known())) == unknown


def test_alerts_and_panels_have_names_of_their_own_and_say_what_they_mean() -> None:
    rules, panels = list_rules(), list_panels()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all({"summary", "description"} <= rule["annotations"].keys() for rule in rules)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] and panel["title"] for panel in panels)


# What each alert is for: series as they go by the minute, the moment, and who alerts then.
STORIES = [
    ("wukong_spot_lost_pods_total", "0 0 2 2 2", "4m", "WukongSpotPodsLost"),
    ('wukong_spot_blocked_pods{by="budget"}', "0 1 1 1", "3m", "WukongSpotBlockedByBudget"),
    ('wukong_spot_blocked_pods{by="room"}', "0 3 3 3", "3m", "WukongSpotNoRoom"),
    ("wukong_spot_unavailable_seconds_total", "0 0 200 200", "3m", "WukongSpotShortOfReplicas"),
    ('wukong_spot_notices_total{course="Reclaim",instance="a"}', "0 0 9 9", "3m", "WukongSpotMassReclaim"),
    ('wukong_spot_cordon_seconds_bucket{le="5"}', "0 0 4 4", "3m", "WukongSpotSlowCordon"),
]


def test_a_real_prometheus_takes_the_alerts_and_each_fires_when_it_should(
    prometheus: RunPrometheus, tmp_path: Path
) -> None:
    program = prometheus_program.find(lambda line: None).with_name("promtool")
    tests = []
    for series, values, moment, alert in STORIES:
        own = [{"series": series, "values": values}]
        if "bucket" in series:
            own.append({"series": series.replace('"5"', '"+Inf"'), "values": values})
        there = {"series": "wukong_spot_lost_pods_total", "values": "0 0 0 0 0"}
        firing = f'count(ALERTS{{alertstate="firing",alertname="{alert}"}})'
        others = f'count(ALERTS{{alertstate="firing",alertname!="{alert}"}}) or vector(0)'
        tests.append(
            {
                "interval": "1m",
                "input_series": own if "lost" in series else [*own, there],
                "promql_expr_test": [
                    {"expr": firing, "eval_time": moment, "exp_samples": [{"labels": "{}", "value": 1}]},
                    {"expr": others, "eval_time": moment, "exp_samples": [{"labels": "{}", "value": 0}]},
                ],
            }
        )
    absent = 'count(ALERTS{alertstate="firing",alertname="WukongSpotAbsent"})'
    tests.append(
        {
            "interval": "1m",
            "input_series": [{"series": "up", "values": "1x10"}],
            "promql_expr_test": [{"expr": absent, "eval_time": "6m", "exp_samples": [{"labels": "{}", "value": 1}]}],
        }
    )
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": tests}))
    assert {alert for *_, alert in STORIES} | {"WukongSpotAbsent"} == {rule["alert"] for rule in list_rules()}
    for words in (["check", "rules", str(ALERTS)], ["test", "rules", str(file)]):
        run = subprocess.run([str(program), *words], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
