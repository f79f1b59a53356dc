"""`wukong run` says what is wrong with its options before it touches a cluster."""

from __future__ import annotations

import json
import logging

import pytest

from wukong.cli import main
from wukong.cli.verbs.run import log_to_stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--components", "lod"), "unknown component 'lod'. Did you mean \"load\"?"),
        (("--components", "load", "--lease", "wukong"), "--lease: expected NAMESPACE/NAME, got 'wukong'."),
        (("--components", "load", "--probes", "8080x"), "--probes: expected HOST:PORT such as 0.0.0.0:8080"),
        (("--components", "load", "--kubeconfig", "none.yaml"), "none.yaml: there is no such file."),
        ((), "Missing option '--components'"),
    ],
)
def test_wrong_options_are_named(words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    assert expected in capsys.readouterr().err


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
