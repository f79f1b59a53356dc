"""`wukong run` says what is wrong with its options before it touches a cluster."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from wukong.app.components.load import LoadOptions
from wukong.cli import main
from wukong.cli.verbs.run import command, read_options
from wukong.cli.views.log_lines import log_to_stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--components", "lod"), "unknown component 'lod'. Did you mean \"load\"?"),
        (("--components", "load", "--lease", "wukong"), "--lease: expected NAMESPACE/NAME, got 'wukong'."),
        (("--components", "load", "--probes", "8080x"), "--probes: expected HOST:PORT such as 127.0.0.1:8080"),
        (("--components", "load", "--kubeconfig", "none.yaml"), "none.yaml: there is no such file."),
        (("--components", "load", "--measure-seconds", "0"), "'--measure-seconds': 0.0 is not in the range"),
        (("--components", "load", "--measure-seconds", "-5"), "'--measure-seconds': -5.0 is not in the range"),
        (("--components", "load", "--measure-seconds", "nan"), "'--measure-seconds': 'nan' is not a valid number"),
        (("--components", "load", "--measure-seconds", "inf"), "'--measure-seconds': inf is not in the range"),
        (("--components", "load", "--stale-seconds", "nan"), "'--stale-seconds': 'nan' is not a valid number"),
        (("--components", "load", "--quiet-seconds", "-1"), "'--quiet-seconds': -1.0 is not in the range"),
        (("--components", "extender", "--critical-priority", "9" * 30), "'--critical-priority': 9999"),
        (
            ("--components", "load", "--prometheus", "ftp://me:S3CRET@p"),
            "--prometheus: expected an address such as http://prometheus:9090, got 'ftp://***@p'.",
        ),
        ((), "Missing option '--components'"),
    ],
)
def test_wrong_options_are_named(words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    assert expected in capsys.readouterr().err


CONFIG = """
components: [load]
lease: nowhere
load: {labelStep: 0}
"""


def test_a_file_and_flags_are_told_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG)
    assert main(["run", "--config", str(path), "--probes", "x"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {path}: $.load.labelStep: expected an integer from 1 to 50, got 0.",
        f"error: {path}: $.lease: expected NAMESPACE/NAME, got 'nowhere'.",
        "error: --probes: expected HOST:PORT such as 127.0.0.1:8080, or :8080 for all addresses, got 'x'.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("components: [load", "broken YAML: line 2, column 1"),
        ("lease: 2026-13-45", "$.lease: expected NAMESPACE/NAME, got '2026-13-45'."),
        ("components: !!bool load", "broken YAML: "),
        (
            "",
            "$.components: expected some of load, extender, policy, admission, vm, rollout, spot, ledger, scheduler, "
            "got none.",
        ),
        ("- load", "expected a mapping such as components: [load], got ['load']."),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert main(["run", "--config", str(path)]) == 2
    assert expected in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--config", "nowhere.yaml"]) == 2
    assert "nowhere.yaml: no such file." in capsys.readouterr().err


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("components: [load]\nload: {labelStep: 10, labelPrefix: a.example}\nlease: a/b\ndryRun: true\n")
    words = ["--config", str(path), "--label-step", "20", "--components", "load,policy", "--no-leader-election"]
    config = read_options(command.make_context("run", words), str(path))
    assert config.options["load"] == LoadOptions(label_step=20, label_prefix="a.example")
    assert [component.name for component in config.components] == ["load", "policy"]
    assert (config.run.dry_run, config.run.leader_election, config.run.lease) == (True, False, "a/b")


def test_log_lines_are_a_constant_message_and_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        log_to_stderr("json")
        logging.getLogger("wukong.test").warning("action failed", extra={"item": "load n1"})
        line = json.loads(capsys.readouterr().err)
        assert (line["level"], line["message"], line["item"]) == ("warning", "action failed", "load n1")
        log_to_stderr("text")
        logging.getLogger("wukong.test").info("started", extra={"components": ["load"]})
        assert capsys.readouterr().err.rstrip().endswith("info    started components=['load']")
    finally:
        root.handlers[:], root.level = before[0], before[1]
