"""Every scenario in docs/scenarios.md is played, and every field is explained there."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from wukong.api.kinds import KINDS
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.expectations import find_differences
from wukong.embedded.scenario.format.fields import ENTRY_ACTIONS, NodeEntry
from wukong.embedded.scenario.record.story import Story, WorkloadSummary

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "scenarios.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOCS, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_documented_scenario_is_as_it_expects(block: str) -> None:
    scenario = read_scenario(block)
    assert find_differences(scenario.expect, play_scenario(scenario)) == []


def test_every_field_and_kind_is_explained() -> None:
    fields = [
        field.encode_name
        for struct in (Scenario, NodeEntry, WorkloadSummary, Story)
        for field in msgspec.structs.fields(struct)
    ]
    unsaid = {"kind", "version", "events", "trace"}  # not the reader's to write, or not in the document
    for name in [*fields, *ENTRY_ACTIONS.values(), *(kind.resource.kind for kind in KINDS.manifests())]:
        assert name in unsaid or re.search(rf"\b{name}\b", DOCS), name


def test_every_example_is_named() -> None:
    for path in (ROOT / "examples" / "sim").iterdir():
        assert f"`{path.stem}`" in DOCS, path.name
