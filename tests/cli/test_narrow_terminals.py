"""A cluster with names as clouds give them, at 80, 100 and 120 columns and in a pipe: nothing is cut without a sign."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from cli.eks_cluster import NODES, eks_cluster, node_name
from cli.manifests import Manifest, deployment, pod, write_json, write_yaml
from wukong.cli import main
from wukong.cli.views.live_state import LiveState, NodeState, PodState, WorkloadState
from wukong.cli.views.live_view import LiveView

WIDTHS = (80, 100, 120)
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TABLE_HEADINGS = ("NODES", "   NODES", "PODS EACH", "TIME", "WORKLOAD", "TERM")
LONG = "a-deployment-with-a-rather-long-name-of-the-payments-team"
COMMANDS = {
    "explain one that fits": "explain -s eks.json -f web.yaml",
    "explain one that is barred": "explain -s eks.json -f cache.yaml",
    "explain one that is stuck": "explain -s eks.json -f big.yaml",
    "explain by policy": "explain -s eks.json -f web.yaml --policy policy.yaml",
    "explain with preferences": "explain -s eks.json -f picky.yaml --policy policy.yaml",
    "capacity": "capacity -s eks.json -f web.yaml",
    "sim run": "sim run -s eks.json -f long.yaml --no-view",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eks")
    write_json(folder / "eks.json", *eks_cluster())
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "cache"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cache = pod("cache-new", cpu="100m", affinity=apart)
    cache["metadata"] |= {"namespace": "shop", "labels": {"app": "cache"}}
    write_yaml(folder / "web.yaml", pod("web", cpu="300m"))
    write_yaml(folder / "big.yaml", pod("big", cpu="2"))
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-central-1a"]}
    preference = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    rather = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    write_yaml(folder / "picky.yaml", pod("picky", cpu="300m", affinity=rather))
    write_yaml(folder / "cache.yaml", cache)
    write_yaml(folder / "long.yaml", deployment(LONG, cpu="2"))
    policy: Manifest = {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "capacity": {"strategy": "spot-first"}},
    }
    policy["spec"]["scheduling"] = {"resourceAffinity": {"preferredCPU": {"weight": 80, "threshold": "70%"}}}
    write_yaml(folder / "policy.yaml", policy)
    return folder


@pytest.fixture
def show(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int | None], list[str]]:
    """The lines that a command prints on a terminal of this width, or into a pipe."""
    monkeypatch.chdir(folder)

    def run(name: str, width: int | None) -> list[str]:
        class Out(io.StringIO):
            def isatty(self) -> bool:
                return width is not None

        monkeypatch.setenv("COLUMNS", str(width or 80))
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys, "stdout", out := Out())
        assert main(shlex.split(COMMANDS[name])) in (0, 1)
        return STYLE.sub("", out.getvalue()).splitlines()

    return run


def list_table_lines(lines: list[str]) -> list[str]:
    """Those of the tables: from their headings to the next empty line."""
    chosen, is_inside = [], False
    for line in lines:
        is_inside = bool(line) and (is_inside or line.startswith(TABLE_HEADINGS))
        chosen += [line] if is_inside and not line.startswith(("No room", "Nothing", "points =", "Note", "…")) else []
    return chosen


@pytest.mark.parametrize(
    ("name", "width"), [*((name, width) for name in COMMANDS if name != "sim run" for width in WIDTHS), ("sim run", 80)]
)
def test_tables_fit_the_terminal_and_stay_short(
    show: Callable[[str, int | None], list[str]], name: str, width: int
) -> None:
    lines = show(name, width)
    table = list_table_lines(lines)
    assert table
    assert [line for line in table if len(line) > width] == []
    assert len(lines) <= 45


def test_what_there_is_no_room_for_is_named_and_nothing_else_is_missing(
    show: Callable[[str, int | None], list[str]],
) -> None:
    whole = next(line for line in show("explain with preferences", None) if line.startswith("   NODES")).split()
    for width, dropped in ((80, ["IMAGE", "BALANCE"]), (100, []), (120, [])):
        lines = show("explain with preferences", width)
        headings = next(line for line in lines if line.startswith("   NODES")).split()
        assert headings == [heading for heading in whole if heading not in dropped]
        named = [line for line in lines if line.startswith("No room for ") and "every column" in line]
        assert named == ([f"No room for {', '.join(dropped)}: -o wide shows every column and node."] if dropped else [])


def test_reasons_are_whole_at_80_columns(show: Callable[[str, int | None], list[str]]) -> None:
    text = re.sub(r"\s+", " ", "\n".join(show("explain one that is barred", 80)))
    for part in (
        "taint spot=true:NoSchedule",
        "taint nvidia.com/gpu=present:NoSchedule",
        "its podAntiAffinity[0] (app=cache per kubernetes.io/hostname): shop/cache-00 and 5 more",
    ):
        assert part in text


def test_different_groups_have_different_names_at_80_columns(show: Callable[[str, int | None], list[str]]) -> None:
    lines = show("explain one that fits", 80)
    names = [line[3:38].split(" and ")[0].strip() for line in lines if line.startswith(("★", "   ip-"))]
    assert len(names) == len(set(names)) > 5
    assert all("…" in name for name in names)


def test_a_pipe_gets_whole_names_and_every_column(show: Callable[[str, int | None], list[str]]) -> None:
    lines = show("explain one that fits", None)
    assert not any("…" in line for line in lines if "ip-10" in line)
    assert not any(line.startswith("No room") for line in lines)
    assert any(line.startswith(f"{node_name(1)}, {node_name(5)}, ") for line in lines)


def test_wide_shows_every_node_in_one_line_whatever_the_width(
    show: Callable[[str, int | None], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "wide", "explain -s eks.json -f web.yaml -o wide")
    lines = [line for line in show("wide", 80) if "ip-10-0" in line and not line.startswith("Pod")]
    assert len(lines) == NODES
    assert {name for name in map(node_name, range(NODES)) if sum(name in line for line in lines) != 1} == set()


def a_live_view(width: int, height: int) -> list[str]:
    """Forty nodes of which the last is cordoned and the one before has a pod that starts; thirty workloads."""
    quiet = [NodeState(node_name(number), is_spot=False, remarks=(), pods=[]) for number in range(NODES - 2)]
    starting = [PodState("shop/late", "starting", False)]
    nodes = [
        *quiet,
        NodeState(node_name(NODES - 2), False, (), starting, 7),
        NodeState(node_name(NODES - 1), False, ("cordoned",), [], 9),
    ]
    done = [
        WorkloadState(f"shop/{LONG}-{number}", "Deployment", 2, 2, 2, 0, 0, 0, is_complete=True) for number in range(30)
    ]
    late = WorkloadState("shop/zz-late", "Deployment", 2, 1, 1, 1, 0, 0, is_complete=False, change=8)
    live_state = LiveState(75.0, NODES, 11, 1234, [*done, late], 31, nodes, [])
    console = Console(width=width, height=height, file=io.StringIO(), no_color=True)
    lines = console.render_lines(LiveView(console).render(live_state, []), pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_view_shows_first_what_changes_and_shortens_names(width: int) -> None:
    lines = a_live_view(width, 24)
    assert all(len(line) <= width for line in lines)
    assert lines[1].startswith("shop/zz-late")
    first_node = lines.index("") + 1
    assert "cordoned" in lines[first_node]
    assert lines[first_node + 1].split()[-1] in ("□", "o", "z", "l")
    if width == 80:
        assert lines[first_node].startswith("ip-10-0-15-229.eu-c…e.internal")
