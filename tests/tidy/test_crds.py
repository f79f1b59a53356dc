"""What deploy/crds holds is what the structs make today."""

from __future__ import annotations

from pathlib import Path

from wukong.api.crds import build_crds, file_name_of
from wukong.cli.verbs.manifests_crds import text

FOLDER = Path(__file__).parents[2] / "deploy" / "crds"


def test_the_files_are_what_the_generator_writes() -> None:
    held = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}
    assert held == {file_name_of(document): text(document) for document in build_crds()}, "run `make crds`"
