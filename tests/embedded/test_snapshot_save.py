"""A cluster that a scenario has come to, saved and loaded again: it is at rest, and nothing of it is another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wukong.api.kinds import CONTROLLER_REVISIONS, NODES
from wukong.app.embedded import play_scenario
from wukong.app.snapshots import load, make_baseline
from wukong.cli.inputs.sim_source import read_scenario_file
from wukong.embedded.scenario import Scenario
from wukong.embedded.snapshot.save import list_snapshot
from wukong.embedded.world.world import World
from wukong.ports import Document

EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
Name = tuple[str, str, str]


def name_of(document: Document) -> Name:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


def snapshot_of(world: World) -> dict[Name, Document]:
    """Revisions of DaemonSets are left out: a cluster has them where they were loaded, and the actors keep none."""
    return {
        name_of(document): document
        for document in list_snapshot(world.server)
        if document["kind"] != CONTROLLER_REVISIONS.kind or "StatefulSet" in str(document["metadata"])
    }


@pytest.mark.parametrize(
    "example",
    [
        "deadlock",  # stuck in the middle of a rollout
        "daemon-set-cordon",
        "jobs",
        "node-silent",
        "partition",  # of a StatefulSet, with revisions
        "paused",
        "policies",  # with budgets of policies
        "preemption",  # pods that wait
        "quota-stops-rollout",
        "stateful-set-zone-lost",  # volumes, and a pod that waits for its zone
        "vm-drain",
    ],
)
def test_a_saved_cluster_that_is_loaded_again_is_at_rest_and_the_same(example: str) -> None:
    scenario, ends = read_scenario_file(str(EXAMPLES / f"{example}.yaml")), list[World]()
    story = play_scenario(scenario, at_end=ends.append)
    (end,) = ends
    saved = snapshot_of(end)
    documents = msgspec.json.decode(msgspec.json.encode(list(saved.values())))
    same_components = Scenario(components=scenario.components, options=scenario.options)
    baseline = make_baseline(load(documents, end.clock.now()), same_components)
    assert (baseline.before.changes, baseline.before.stuck) == (0, story.stuck)
    assert snapshot_of(baseline.fork()[0].world) == saved


def test_usage_that_a_timeline_told_is_not_kept() -> None:
    scenario, ends = read_scenario_file(str(EXAMPLES / "load.yaml")), list[World]()
    play_scenario(scenario, at_end=ends.append)
    kinds = {document["kind"] for document in list_snapshot(ends[0].server)}
    assert NODES.kind in kinds
    assert not {kind for kind in kinds if "Usage" in kind}
