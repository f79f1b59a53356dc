"""Every scenario in examples/sim is played here and must be as it expects; and the promises of a story."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wukong.app.embedded import play_scenario
from wukong.cli.inputs.sim_source import read_scenario_file
from wukong.embedded.scenario import Story
from wukong.embedded.scenario.expectations import find_differences

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "examples" / "sim").glob("*.yaml"))


def play_example(name: str, seed: int = 0) -> Story:
    return play_scenario(read_scenario_file(str(ROOT / "examples" / "sim" / f"{name}.yaml")), seed)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_story_is_as_the_example_expects(path: Path, seed: int) -> None:
    scenario = read_scenario_file(str(path))
    assert find_differences(scenario.expect, play_scenario(scenario, seed)) == []


def test_a_deadlocked_rollout_is_given_up_ten_minutes_after_it_stopped() -> None:
    story = play_example("deadlock")
    (gave_up,) = [event for event in story.events if event.text == "ProgressDeadlineExceeded"]
    assert 600 <= gave_up.at - 60 <= 602
    assert any(
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules" in reason for reason in story.stuck
    )


def test_versions_that_keep_apart_never_share_a_node() -> None:
    homes: dict[str, set[str]] = {}  # node → versions that were bound there
    for line in play_example("versions-apart").trace:
        step = json.loads(line)
        if step["action"].get("type") == "Bind":
            version = step["action"]["key"]["name"].split("-")[1]
            homes.setdefault(step["action"]["node"], set()).add(version)
    assert len(homes) == 4
    assert all(len(versions) == 1 for versions in homes.values())


def play_in_process(name: str, hash_seed: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", "wukong", "sim", "run", f"examples/sim/{name}.yaml", "-o", "json", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


@pytest.mark.slow
def test_two_processes_tell_the_same_story_whatever_their_hash_seed() -> None:
    assert play_in_process("drain", "1") == play_in_process("drain", "2")


def test_another_seed_tells_another_story_where_chance_decides() -> None:
    assert play_example("versions-apart", seed=1).digest == play_example("versions-apart", seed=1).digest
    assert len({play_example("versions-apart", seed=seed).digest for seed in range(5)}) > 1
