"""The Rollouts that docs/rollouts.md shows are accepted as they stand, in both languages, and every field is named."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from wukong.api.rollout import BlueGreen, Canary, CanaryStep, Rollout, RolloutSpec
from wukong.placement.rollout import find_rollout_problems

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = {name: (DOCS / name).read_text("utf-8") for name in ("rollouts.md", "rollouts.zh-CN.md")}


def blocks_of(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("name", TEXTS)
def test_every_rollout_that_is_shown_is_accepted(name: str) -> None:
    blocks = blocks_of(TEXTS[name])
    assert len(blocks) == 2
    for block in blocks:
        assert find_rollout_problems(msgspec.convert(yaml.safe_load(block), Rollout)) == []


def test_both_languages_show_the_same() -> None:
    first, second = (blocks_of(text) for text in TEXTS.values())
    assert first == second


@pytest.mark.parametrize("name", TEXTS)
def test_every_field_is_named(name: str) -> None:
    structs = (RolloutSpec, BlueGreen, Canary, CanaryStep)
    fields = {field.encode_name for struct in structs for field in msgspec.structs.fields(struct)}
    assert [field for field in sorted(fields) if not re.search(rf"\b{field}\b", TEXTS[name])] == []
