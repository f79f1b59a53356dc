"""The commands docs/extender-install.md shows do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from wukong.cli.verbs.manifests_extender import command

DOCS = (Path(__file__).parents[2] / "docs" / "extender-install.md").read_text("utf-8")
COMMANDS = re.findall(r"^wukong manifests extender (.*)$", DOCS, flags=re.MULTILINE)


def test_there_are_three_ways() -> None:
    assert len(COMMANDS) == 3


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_works_and_writes_the_files_that_are_applied(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given, _, target = words.partition(" > ")
    done = CliRunner().invoke(command, shlex.split(given), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    if target:
        Path(target).write_text(done.stdout)
    (applied,) = [name for name in re.findall(r"kubectl apply -f (\S+)", DOCS) if Path(name).exists()]
    assert all(entry["kind"] for entry in yaml.safe_load_all(Path(applied).read_text()))
    assert DOCS.count("http://10.96.0.50:8080") == 2
