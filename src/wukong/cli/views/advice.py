"""What would make a change safe, as lines: what to do, what it gives up, and the patch to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from wukong.app.install.text import as_yaml
from wukong.cli.views.console import count
from wukong.forecast.durations import format_about
from wukong.forecast.fields import Advice

_WIDTH = 110


def show_advice(advice: Sequence[Advice], seeds: int) -> Iterator[str]:
    """The best first; each was played with every seed."""
    for number, entry in enumerate(advice, start=1):
        yield from wrap_text(entry.title, f"{number}. ")
        yield from wrap_text(
            f"Then it completes {format_about(entry.seconds)}, in {seeds} of {seeds}. {entry.text}", "   "
        )
        for nodes in entry.nodes:
            yield f"   To try it: --add-nodes {nodes.like}={nodes.count}"
        for command in entry.commands:
            yield f"   {command}"
        for line in as_yaml(entry.patches).splitlines() if entry.patches else ():
            yield f"     {line}"


def wrap_text(text: str, begin: str) -> list[str]:
    """Lines of a text of several sentences; those after the first are indented like it."""
    return wrap(
        text,
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )


def show_patch_note(path: str, entry: Advice | None) -> str:
    """What became of --write-patch."""
    if entry is None:
        return f"{path}: not written, for there is no advice that is a patch."
    files = count(len(entry.patches), "patch", "patches")
    return f"{path}: {files} written. Name the folder under components: in your kustomization.yaml."
