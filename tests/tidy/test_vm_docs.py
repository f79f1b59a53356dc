"""docs/vm.md and its Chinese twin: every Wukong in them is right, every example is there, every field and word too."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from wukong.api.vm import EVICTION_STRATEGIES, RESTART_POLICIES, RUN_STRATEGIES, VmScheduling, Wukong, WukongSpec
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import find_wukong_problems
from wukong.placement.vm.node_affinity import MOST_TERMS

ROOT = Path(__file__).parents[2]
DOCS = ["docs/vm.md", "docs/vm.zh-CN.md"]
EXAMPLES = sorted((ROOT / "examples" / "vm").glob("*.yaml"))
WORDS = [
    *(field.encode_name for field in msgspec.structs.fields(WukongSpec)),
    *(field.encode_name for field in msgspec.structs.fields(VmScheduling)),
    *RUN_STRATEGIES,
    *EVICTION_STRATEGIES,
    *RESTART_POLICIES,
]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(name: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text_of(name), flags=re.DOTALL | re.MULTILINE)
    return [block for word, block in fenced if word == language]


@pytest.mark.parametrize("name", DOCS)
def test_every_wukong_is_accepted(name: str) -> None:
    documents = [yaml.safe_load(block) for block in blocks(name, "yaml")]
    assert len(documents) > len(EXAMPLES)
    for document in documents:
        assert find_wukong_problems(msgspec.convert(document, Wukong), BUILT_IN) == []


@pytest.mark.parametrize("name", DOCS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_shown_word_for_word(name: str, path: Path) -> None:
    assert f"# examples/vm/{path.name}\n{path.read_text('utf-8')}" in blocks(name, "yaml")


def test_both_languages_show_the_same_wukongs_and_commands() -> None:
    english, chinese = ([yaml.safe_load(block) for block in blocks(name, "yaml")] for name in DOCS)
    assert english == chinese
    commands = [
        [line.partition("  #")[0].rstrip() for block in blocks(name, "") for line in block.splitlines()]
        for name in DOCS
    ]
    assert commands[0] == commands[1]


@pytest.mark.parametrize("name", DOCS)
def test_every_field_and_every_choice_is_named(name: str) -> None:
    text = text_of(name)
    assert [word for word in WORDS if not re.search(rf"\b{word}\b", text)] == []
    assert str(MOST_TERMS) in text


def test_the_tables_have_as_many_rows_in_both_languages() -> None:
    rows = [[line.count("|") for line in text_of(name).splitlines() if line.startswith("|")] for name in DOCS]
    assert rows[0] == rows[1]
