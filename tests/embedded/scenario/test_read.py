"""Scenario files as people write them: what is read, and what is told of mistakes."""

from __future__ import annotations

import json

import pytest

from wukong.embedded.scenario import read_scenario
from wukong.embedded.scenario.format.fields import seconds_of
from wukong.errors import InputError


def problems_of(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_scenario(text)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h", 3600), ("1h30m", 5400), ("0s", 0), ("", None), ("90", None), ("1 h", None)],
)
def test_a_duration_has_units(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


def test_a_prefix_and_a_count_name_nodes_from_one() -> None:
    assert read_scenario("nodes: [{namePrefix: n, count: 3}]").nodes[0].names() == ["n1", "n2", "n3"]


def test_every_problem_is_told_at_once_with_its_place() -> None:
    messages = problems_of(
        """
        nodes: [5, {namePrefx: a, name: b}, {name: c, capacity: {cpu: four}}]
        timeline: [{at: 60, cordon: b}, {at: 1s, cordon: b, drain: b}]
        manifests: [{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: x}}]
        until: soon
        """
    )
    assert [problem.split(": ")[0] for problem in messages] == [
        "$.nodes[1].namePrefx",
        "$.nodes[0]",
        "$.nodes[2].capacity.cpu",
        "$.timeline[0].at",
        "$.timeline[1]",
        "$.until",
        "$.manifests[0].kind",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("expect: {setled: true}", '$.expect.setled: unknown field. Did you mean "settled"?'),
        ("timeline: [{at: 5, cordon: a}]", '"90s", "10m" or "1h", got 5. Add a unit.'),
        ("timeline: [{at: 5s, explode: a}]", "$.timeline[0].explode: unknown field."),
        ("timeline: [{at: 5s, usage: {node: a, cpu: 140}}]", "$.timeline[0].usage.cpu: expected percent from 0 to 100"),
        ("timeline: [{at: 5s, usage: {node: ''}}]", "$.timeline[0].usage: expected the name of a node, or a workload"),
        (
            "timeline: [{at: 5s, usage: {node: a, cpus: 4}}]",
            '$.timeline[0].usage.cpus: unknown field. Did you mean "cpu"?',
        ),
        ("timeline: [{at: 5s, drain: {}}]", "$.timeline[0].drain: expected nodes as {selector: {matchLabels: …}} or"),
        ("timeline: [{at: 5s, drain: {zone: a, selector: {}}}]", "$.timeline[0].drain: expected nodes as {selector: {"),
        ("timeline: [{at: 5s, kill: {selektor: {}}}]", 'kill.selektor: unknown field. Did you mean "selector"?'),
        ("timeline: [{at: 5s, lose: a}]", "$.timeline[0].lose: expected {zone: a} or {selector: …}, got 'a'."),
        (
            "timeline: [{at: 5s, lose: {selector: {matchExpressions: [{key: a, operator: In}]}}}]",
            "$.timeline[0].lose.selector: values of a: expected at least one with In.",
        ),
        (
            "timeline: [{at: 5s, lose: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}]",
            "$.timeline[0].lose.selector: values of a: expected none with Exists.",
        ),
        ("componets: [load]", '$.componets: unknown field. Did you mean "components"?'),
        ("timeline: [{at: 5s}]", "expected at and one of apply, patch, delete, scale, cordon"),
        ("{timeline: [{at: 2h, cordon: a}], until: 1h}", "$.until: something happens at 2h, after 1h. Make until"),
        ("nodes: [{name: a}, {name: a}]", '$.nodes: the name "a" is there twice. Rename one of the two.'),
        ("nodes: [{name: a, count: 2}]", "$.nodes[0].count: goes with namePrefix, not with name."),
        ("nodeGroups: [{name: a, min: 3, max: 2}]", "$.nodeGroups[0].min: expected a number from 0 to max, which is 2"),
        ("nodeGroups: [{name: a, max: 2, colour: red}]", "$.nodeGroups[0].colour: unknown field."),
        ("nodeGroups: [{name: a, max: 1}, {name: a, max: 1}]", '$.nodeGroups: the name "a" is there twice.'),
        ("nodeGroups: {name: a}", "$.nodeGroups: expected"),
        ("{nodeGroups: [{name: ab, max: 1}], nodes: [{name: n, group: ac}]}", '$.nodes[0].group: no node group "ac".'),
        ("nodes: [{namePrefix: a}]", "$.nodes[0].count: expected how many nodes, at least 1, got None."),
        ("manifests: [{apiVersion: v1, kind: Pod}]", "$.manifests[0].metadata.name: expected a name."),
        ("manifests: [{apiVersion: v2, kind: Pod, metadata: {name: a}}]", "expected v1 for kind Pod, got 'v2'."),
        ("expect: {workloads: {a/b: {available: two}}}", 'available: expected a number or a bound such as ">=2"'),
        ("expect: {events: [{subject: a}]}", "$.expect.events[0]: object missing required field text."),
        ("expect: {events: [{text: ''}]}", "$.expect.events[0].text: expected a part of what happened"),
        ("expect: {events: [{text: a, at: 5s}]}", "$.expect.events[0].at: unknown field."),
        ("expect: {events: [{text: a, after: 5}]}", '.after: expected a duration such as "90s", "10m" or "1h", got 5.'),
        (
            "expect: {events: [{text: a, after: 9s, before: 5s}]}",
            "nothing is after 9s and before 5s. Exchange the two.",
        ),
        ("expect: {events: [{text: a, count: few}]}", "$.expect.events[0].count: expected a number or a bound such as"),
        ("timeline: [{at: 5s, delete: {kind: Pod, name: a, gracePeriodSeconds: -1}}]", "expected 0 or more seconds."),
        ("nodes: [", "broken YAML: line 2, column 1: "),
        ("until: 2026-13-45", "$.until: expected a duration such as"),
        ("nodes: &all [*all]", "broken YAML: line 1, column 14: *all is within itself."),
        ("- a", "expected a scenario (a mapping with nodes, manifests, timeline)"),
        ("a: 1\n---\nb: 2", "expected one YAML document, found 2."),
    ],
)
def test_a_mistake_is_told_with_what_was_expected(text: str, problem: str) -> None:
    assert problem in "\n".join(problems_of(text))


def test_faults_of_a_timeline_are_checked() -> None:
    text = """
timeline:
  - {at: 1s, fault: {type: conflikt}}
  - {at: 1s, fault: {type: conflict, for: 5}}
  - {at: 1s, fault: {type: conflict, rate: 20}}
  - {at: 1s, fault: {type: node-flapping, rate: 20}}
  - {at: 1s, fault: {type: node-flapping, rate: 0}}
"""
    with pytest.raises(InputError) as caught:
        read_scenario(text)
    first, *others = caught.value.problems
    assert first.startswith(
        '$.timeline[0].fault.type: expected a type of fault, got "conflikt". Did you mean "conflict"?'
    )
    assert others == [
        '$.timeline[1].fault.for: expected a duration such as "90s", "10m" or "1h", got 5.',
        "$.timeline[2].fault.rate: expected a share of each write, 0.2 for one in five, got 20.",
        "$.timeline[4].fault.rate: expected how often per minute, more than 0, got 0.",
    ]


@pytest.mark.parametrize("annotation", ["stop-seconds", "sleepy"])
def test_an_annotation_that_no_kubelet_can_read_is_named_with_its_place(annotation: str) -> None:
    """Its pods would fail, and be replaced until the story ends."""
    template = {"metadata": {"annotations": {f"sim.novasphere.dev/{annotation}": "v1"}}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}}
    with pytest.raises(InputError, match=rf"\$\.manifests\[0\]\.spec\.template\.metadata\.annotations: .*{annotation}"):
        read_scenario(json.dumps({"nodes": [{"name": "a"}], "manifests": [web], "until": "1m"}))
