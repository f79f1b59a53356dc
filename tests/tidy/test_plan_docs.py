"""docs/plan.md shows what `wukong plan` prints, and names every field of its document and every option there is."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from demo import output_of_demo_commands
from wukong.cli.verbs.plan import command
from wukong.forecast.fields import VERDICT_KINDS, Plan

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "plan.md").read_text("utf-8")
SHARED = {"--snapshot", "--kubeconfig", "--context", "--help", "--output", "--filename", "--namespace", "--selector"}


def list_fields(struct: Any) -> set[str]:
    """The names of all fields of a struct and of those within it, as JSON has them."""
    names: set[str] = set()
    for field in msgspec.structs.fields(struct):
        names.add(field.encode_name)
        for part in _parts_of(field.type):
            names |= list_fields(part)
    return names


def _parts_of(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    if isinstance(annotation, types.UnionType) or typing.get_args(annotation):
        return [part for argument in typing.get_args(annotation) for part in _parts_of(argument)]
    return []


def test_every_field_of_the_document_is_named() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", TEXT))))
    assert list_fields(Plan) - {"findings"} - named == set()


def test_every_verdict_and_every_option_is_named() -> None:
    assert [kind for kind in VERDICT_KINDS if f"**{kind}**" not in TEXT] == []
    flags = {option for parameter in command.params for option in parameter.opts if option.startswith("--")} - SHARED
    assert sorted(flag for flag in flags if flag not in TEXT) == []


@pytest.mark.slow
@pytest.mark.xdist_group("demo")  # the worker that plays the demo, which runs the same commands
def test_the_commands_print_what_is_shown() -> None:
    blocks = re.findall(r"^```\n\$ wukong (plan [^\n]*)\n\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    outputs = output_of_demo_commands()
    for line, shown in blocks:
        printed, place = "\n".join(outputs[f"wukong {line}"]), 0
        for part in shown.split("…\n"):
            assert part in printed[place:], part
            place = printed.index(part, place) + len(part)
