"""A plugin of one's own: the documented example works as written, beside the built-in plugins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import a_node, a_pod
from wukong.api.profile import Profile, default_profile
from wukong.engine import Scheduler, Snapshot
from wukong.engine.arrays import Ints, Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, Scope, ScorePart, highest_is_best
from wukong.engine.plugins.registry import PLUGINS
from wukong.engine.view import View

DOCS = Path(__file__).parents[2] / "docs" / "plugins.md"
SPOT = {"karpenter.sh/capacity-type": "spot"}


@pytest.fixture
def documented() -> dict[str, Any]:
    """What the code blocks of the documentation define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, names)
    return names


def scheduler_with(plugin: Plugin, profile: Profile, snapshot: Snapshot) -> Scheduler:
    return Scheduler(snapshot, profile, plugins={**PLUGINS, plugin.name: plugin})


def test_the_documented_plugin_filters_and_scores(documented: dict[str, Any]) -> None:
    snapshot = Snapshot([a_node("a-steady"), a_node("b-spot", labels=SPOT)])
    scheduler = scheduler_with(documented["SpotAware"](), documented["profile"], snapshot)
    assert scheduler.place(a_pod("cheap")) == "b-spot"
    critical = scheduler.decide(a_pod("vital", labels={"tier": "critical"}))
    assert critical.feasible == ("a-steady",)
    assert critical.refusals["b-spot"].reasons == ("node(s) were spot nodes",)
    assert scheduler.decide(a_pod("cheap-2")).scores["SpotAware"].tolist() == [0, 500]


class FewestPods(Plugin):
    """Scores by how many pods a node has; forbids more than three. Depends on the node's load."""

    name = "FewestPods"

    def filter(self, view: View) -> FilterPart:
        return AtMostThree()

    def score(self, view: View) -> ScorePart:
        return Emptier()


class AtMostThree(FilterPart):
    scope = Scope.LOAD

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(Reason("node(s) had three pods", is_final=False), load.lines[0] >= 3)]


class Emptier(ScorePart):
    scope = Scope.LOAD

    def raw(self, rows: Rows, load: Load) -> Ints:
        points: Ints = np.maximum(0, 100 - 10 * load.lines[0])
        return points


class BusiestZone(Plugin):
    """Prefers the zone with the most pods: depends on everything, so it is asked before every decision."""

    name = "BusiestZone"

    def score(self, view: View) -> ScorePart:
        return Busier(view)


class Busier(ScorePart):
    scope = Scope.CLUSTER
    normalise = staticmethod(highest_is_best)

    def __init__(self, view: View) -> None:
        self.view = view

    def raw(self, rows: Rows, load: Load) -> Ints:
        zones = self.view.snapshot.column("topology.kubernetes.io/zone").ids
        totals = np.bincount(zones, weights=self.view.snapshot.load[0]).astype(np.int64)
        return totals[zones][rows]


def test_a_plugin_that_reads_the_load_holds_in_batches_too() -> None:
    base = default_profile()
    profile = replace(base, filters=(*base.filters, "FewestPods"), scores=(("FewestPods", 1),))
    scheduler = scheduler_with(FewestPods(), profile, Snapshot([a_node(name) for name in "ab"]))
    assert scheduler.place_many(a_pod(), 9) == ["a", "b", "a", "b", "a", "b"]
    assert "2 node(s) had three pods" in scheduler.decide(a_pod("late")).message


def test_a_plugin_that_reads_the_whole_cluster_is_asked_every_time() -> None:
    profile = replace(default_profile(), scores=(("BusiestZone", 100), ("NodeResourcesFit", 1)))
    snapshot = Snapshot([a_node("a", zone="x"), a_node("b", zone="y"), a_node("c", zone="y")])
    snapshot.assume("default/first", a_pod("first"), "b")
    scheduler = scheduler_with(BusiestZone(), profile, snapshot)
    assert scheduler.place_many(a_pod(), 4) == ["c", "b", "c", "b"]
    for number in range(6):
        snapshot.assume(f"x/{number}", a_pod(f"x{number}"), "a")
    assert scheduler.place(a_pod("next")) == "a"
