"""The command lines of what changes workloads: what is read from options, and what is refused before any cluster."""

from __future__ import annotations

from typing import Any

import pytest

from cli.conftest import Wukong
from wukong.cli.changes.session import read_minor
from wukong.cli.inputs.workload_change import read_amount, read_selector, read_timeout, read_topology


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["patch", "deploy/web"], "expected a change: --apart, --remove, --replicas, …, or -p PATCH alone."),
        (["patch", "deploy/web", "--replicas", "1", "-p", "{}"], "or -p PATCH alone"),
        (["patch", "deploy/web", "--apart", "hostname"], "--apart: say --required, or --preferred"),
        (["patch", "deploy/web", "--apart", "zone", "--required", "--preferred=3"], "one of them"),
        (["patch", "deploy/web", "--per-version"], "--per-version: of --apart, which is missing"),
        (["patch", "deploy/web", "--apart", "zone", "--remove"], "Leave one of them out"),
        (["patch", "deploy/web", "--max-surge", "x"], "--max-surge: expected a number of pods such as 1"),
        (["patch", "deploy/web", "--replicas", "1", "--timeout", "soon"], "--timeout: expected a duration"),
        (["patch", "deploy/web", "--replicas", "1", "--seeds", "0"], "--seeds: expected 1 to 10,000"),
        (["patch", "deploy/web", "-p", "{", "-n", "shop"], "-p: "),
        (["patch", "ds/agent", "--replicas", "1", "-n", "shop"], "expected a Deployment or StatefulSet, got a Daemon"),
        (["patch", "web", "--replicas", "1", "-n", "shop"], "deploy/web"),
        (["patch", "deploy/web", "--replicas", "1", "--check", "true"], "--check: of --canary, which is missing"),
        (["separate", "deploy/web"], "separate: say --required, or --preferred"),
        (["separate", "deploy/web", "--remove", "--required"], "Leave one out"),
        (["separate", "sts/db", "--required", "-n", "shop"], "expected a Deployment, got a StatefulSet"),
        (["undo", "deploy/web", "--to", "0"], "--to"),
        (["undo", "deploy/web", "--auto-undo", "--no-follow"], "--no-follow does not wait"),
        (["follow", "deploy/web", "--timeout", "-1s"], "--timeout: expected a duration"),
    ],
)
def test_what_is_asked_wrongly_is_said_with_the_option(wukong: Wukong, arguments: list[str], problem: str) -> None:
    run = wukong(*arguments)
    assert run.code == 2
    assert problem in run.err
    assert run.out == ""


def test_texts_become_values() -> None:
    assert read_selector("app=web,tier in (a, b),!old,x!=y") == {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "x", "operator": "NotIn", "values": ["y"]},
        ],
    }
    assert [read_topology(text) for text in ("hostname", "zone", "example.com/rack")] == [
        *("kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack")
    ]
    assert (read_amount("25%", ""), read_amount("3", ""), read_amount(None, "")) == ("25%", 3, None)
    assert (read_timeout("10m"), read_timeout("")) == (600.0, None)


@pytest.mark.parametrize(
    ("version", "minor"), [("v1.35.8", 35), ("v1.30.1-gke.100", 30), ("1.31", 31), ("", None), ("x", None)]
)
def test_the_minor_of_a_server_is_read_from_what_it_calls_itself(version: str, minor: Any) -> None:
    assert read_minor(version) == minor
