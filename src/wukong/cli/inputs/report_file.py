"""The option --report: where the report of a plan goes. Checked before long work is done for it, written whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from wukong.cluster.snapshot_file import refuse_unwritable
from wukong.cluster.whole_file import write_whole_file
from wukong.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def add_report_option(command: F) -> F:
    return click.option(
        "--report", metavar="FILE", help="Write the plan as a page to look at, too: one HTML file, for any browser."
    )(command)


def check_report_path(path: str | None) -> None:
    """Raises InputError if nothing can be written there."""
    if path is None:
        return
    try:
        refuse_unwritable(path)
    except InputError as error:
        raise InputError(f"--report {error}") from None


def write_report(path: str, text: str) -> None:
    """Write the file: whole, or not at all."""
    write_whole_file(path, text.encode("utf-8", "backslashreplace"))
