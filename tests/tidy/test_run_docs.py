"""The configuration that docs/run.md shows is read, and names the flags as they are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from wukong.app.component_choice import LIVE_COMPONENTS
from wukong.app.options import options_of
from wukong.app.run_config import read_run_config, sections

DOCS = (Path(__file__).parents[2] / "docs" / "run.md").read_text("utf-8")


def test_the_example_is_read_and_has_every_section() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", DOCS, flags=re.DOTALL)
    document = yaml.safe_load(block)
    config = read_run_config({}, document, "run.yaml")
    assert [component.name for component in config.components] == list(LIVE_COMPONENTS)
    assert {name for name in sections() if name} <= set(document)


def test_flags_that_are_not_called_like_their_fields_are_named() -> None:
    odd = {
        option.flag
        for struct in sections().values()
        for option in options_of(struct)
        if option.flag != f"--{option.field.replace('_', '-')}"
    }
    assert odd == {
        "--no-leader-election",
        "--no-free-labels",
        "--gate",
        "--policy-max-priority",
        "--admission",
        *(f"--admission-{name}" for name in ("service", "cert", "key")),
        "--ledger",
        "--hook",
        *(f"--hook-{name}" for name in ("token-file", "cert", "key", "plain-http")),
        "--extender",
        *(f"--extender-{name}" for name in ("cert", "key", "client-ca", "plain-http")),
    }
    named = (
        "--no-leader-election",
        "--no-free-labels",
        "`--extender`",
        "`--extender-`",
        "`--gate`",
        "`--admission`",
        "`--admission-`",
        "`--hook`",
        "`--hook-`",
        "`--ledger`",
    )
    assert all(flag in DOCS for flag in named)
