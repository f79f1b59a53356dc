"""Golden pairs: a Wukong and the VirtualMachine that is made of it, field by field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from wukong.api.vm import Wukong, vm_names_of
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import VmSettings, build_virtual_machine, find_wukong_problems
from wukong.ports import Document

ROOT = Path(__file__).parents[3]
PAIRS = sorted((ROOT / "tests" / "golden" / "vm").glob("*.wukong.yaml"))
EXAMPLES = sorted((ROOT / "examples" / "vm").glob("*.yaml"))


def build_documents(path: Path) -> list[Document]:
    """All machines of a Wukong as the API server would hold it: in a namespace, with a uid."""
    document = yaml.safe_load(path.read_text("utf-8"))
    uid = "00000000-0000-0000-0000-000000000001"
    document["metadata"] = {"namespace": "default", "uid": uid, **document["metadata"]}
    wukong = msgspec.convert(document, Wukong)
    assert find_wukong_problems(wukong, BUILT_IN) == []
    return [build_virtual_machine(wukong, name, VmSettings()) for name in vm_names_of(wukong)]


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.name.removesuffix(".wukong.yaml"))
def test_a_wukong_becomes_the_machines_of_its_pair(path: Path) -> None:
    expected = path.with_name(path.name.replace(".wukong.yaml", ".vm.yaml"))
    assert build_documents(path) == list(yaml.safe_load_all(expected.read_text("utf-8")))


def test_there_are_pairs_for_all_examples_and_more() -> None:
    names = {path.name.removesuffix(".wukong.yaml") for path in PAIRS}
    assert len(names) >= 12
    assert {path.stem for path in EXAMPLES} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_the_one_of_its_pair(path: Path) -> None:
    paired = ROOT / "tests" / "golden" / "vm" / f"{path.stem}.wukong.yaml"
    assert path.read_text("utf-8") == paired.read_text("utf-8")
