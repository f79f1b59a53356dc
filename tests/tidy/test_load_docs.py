"""The terms docs/load.md recommends do what it says, on the engine."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import yaml

from builders import a_node, a_pod
from wukong.api.core import Affinity
from wukong.engine import Scheduler, Snapshot

DOCS = Path(__file__).parents[2] / "docs" / "load.md"
CPU = "usage.novasphere.dev/cpu"


def test_quiet_nodes_score_highest_unmeasured_ones_half_busy_ones_nothing() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", DOCS.read_text("utf-8"), flags=re.DOTALL)
    affinity = msgspec.convert(yaml.safe_load(block)["affinity"], Affinity)
    nodes = [a_node("busy", labels={CPU: "70"}), a_node("quiet", labels={CPU: "35"}), a_node("unmeasured")]
    decision = Scheduler(Snapshot(nodes)).decide(a_pod(affinity=affinity))
    assert dict(zip(decision.feasible, decision.scores["NodeAffinity"].tolist(), strict=True)) == {
        "busy": 0,
        "quiet": 200,
        "unmeasured": 100,
    }
