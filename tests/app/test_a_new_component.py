"""A component is its value and one line in the table: flags, file, help, embedded cluster and rights follow from it.

Each case runs in a process of its own, in which one more line stands in the table before anything reads it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Node
from wukong.api.kinds import NODES
from wukong.app.component import Component
from wukong.app.components import COMPONENTS
from wukong.app.permissions import Permission
from wukong.ports import PatchBody
from wukong.state.controller import Watch


class Options(msgspec.Struct, frozen=True, rename="camel"):
    greeting: Annotated[str, Meta(description="What nodes are called.")] = "hello"


class Greeter:
    name = "greeter"
    watches = (Watch(NODES),)

    def __init__(self, greeting):
        self.greeting = greeting

    def reconcile(self, key, state, now):
        node = state.get(Node, key)
        if node is None or node.metadata.labels.get("greeting") == self.greeting:
            return DONE
        return Outcome((Patch(NODES, key, PatchBody("merge", {"metadata": {"labels": {"greeting": self.greeting}}})),))


COMPONENTS["greeter"] = Component(
    name="greeter",
    help="labels every node with a greeting.",
    options=Options,
    permissions_of=lambda options: (Permission("", "nodes", ("list", "watch", "patch")),),
    build_controllers=lambda options, context: (Greeter(options.greeting),),
)
"""
RUN_MAIN = "from wukong.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"


def run_with_it(*arguments: str, program: str = RUN_MAIN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_it_has_help_and_a_flag() -> None:
    result = run_with_it("run", "--help")
    assert result.returncode == 0, result.stderr
    assert "labels every node with a greeting." in result.stdout
    assert "--greeting" in result.stdout
    assert "What nodes are called." in result.stdout


@pytest.mark.slow
def test_its_options_are_read_from_a_file_strictly_and_a_flag_wins(tmp_path: Path) -> None:
    program = (
        "from wukong.app.run_config import read_run_config\n"
        "import json, yaml\n"
        "document = yaml.safe_load(open(sys.argv[1]))\n"
        "flags = {('greeter', 'greeting'): sys.argv[2]} if len(sys.argv) > 2 else {}\n"
        "config = read_run_config(flags, document, 'run.yaml')\n"
        "print(config.options['greeter'].greeting)\n"
    )
    file = tmp_path / "run.yaml"
    file.write_text("components: [greeter]\ngreeter: {greeting: welcome}\n")
    assert run_with_it(str(file), program=program).stdout.strip() == "welcome"
    assert run_with_it(str(file), "good-day", program=program).stdout.strip() == "good-day"
    file.write_text("components: [greeter]\ngreeter: {greetin: welcome}\n")
    result = run_with_it("run", "--config", str(file))
    assert result.returncode == 2
    assert 'Did you mean "greeting"?' in result.stderr


@pytest.mark.slow
def test_a_scenario_names_it_and_its_controller_acts_under_faults(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("components: [greeter]\nnodes: [{namePrefix: n, count: 2}]\nuntil: 10m\n")
    trace = tmp_path / "trace.jsonl"
    result = run_with_it("sim", "run", str(file), "--trace", str(trace), "--faults", "stale,conflict", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["findings"] == []
    by_it = [line for line in trace.read_text().splitlines() if json.loads(line).get("by") == "greeter"]
    assert len(by_it) >= 2
    assert all('"greeting":"hello"' in line.replace(" ", "") for line in by_it)


def test_its_rights_follow_from_its_value() -> None:
    program = (
        "from wukong.app.component import list_permissions\n"
        "print([permission.resource for permission in list_permissions([COMPONENTS['greeter']])])\n"
    )
    assert run_with_it(program=program).stdout.strip() == "['leases', 'leases', 'nodes']"
