"""Printing: documents for programs, tables for people, notes beside them, a progress bar while it takes.

The result goes to stdout, the rest to stderr. Colour only on a terminal, and not if NO_COLOR is set (rich sees to it).
What is printed is decided in the other views. Names and texts come from clusters and files of anybody: everything that
is printed passes through here, where control characters are escaped and rich's markup is not read.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

import click
import yaml
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from wukong.cli.views.escaping import escape, escape_json, escape_line, has_harmful
from wukong.cli.views.table import Table
from wukong.errors import InputError

_PATIENCE_SECONDS = 0.5
_TEXT_TAG = "tag:yaml.org,2002:str"

ReportProgress = Callable[[int, int], None]


def note(text: str) -> None:
    """Print something to know beside the result."""
    say(f"note: {text}")


def say(line: str) -> None:
    """Print a line on stderr."""
    click.echo(escape_line(line), err=True)


def ask(question: str) -> bool:
    """Ask on stderr, and return whether the answer is yes. Raises InputError where nobody sits there."""
    if not sys.stdin.isatty():
        raise InputError(f"{question} Nobody can be asked here: say --yes, or run it in a terminal.")
    click.echo(escape_line(f"{question} [y/N] "), err=True, nl=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class SafeConsole(Console):
    """A terminal on which no text of anybody is more than text."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(file=None if stderr else sys.stdout, stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(escape(segment.text), segment.style)


Part = str | Text | Table


def show(*parts: Part) -> None:
    """Print for people. Text is taken literally: [brackets] and :colons: are Kubernetes', not rich's."""
    if not sys.stdout.isatty():
        for part in parts:
            for line in part.lines() if isinstance(part, Table) else (str(part),):
                click.echo(escape(line))
        return
    console = SafeConsole(stderr=False)
    for part in parts:
        if isinstance(part, Table):
            for text in lay_out(part, console.width):
                console.print(text, soft_wrap=True)
        else:
            console.print(part, soft_wrap=True)


def lay_out(table: Table, width: int) -> Iterator[Text]:
    """Yield the lines of a table for a terminal, and what there was no room for."""
    if table.is_wide:
        for number, line in enumerate(table.lines()):
            yield Text(line, style="bold" if not number else table.rows[number - 1][1])
        return
    layout = table.fit(width)
    yield from (Text(line, style=style) for line, style in layout.lines)
    if layout.dropped:
        yield Text(f"No room for {', '.join(layout.dropped)}: {table.elsewhere}.", style="dim")


def redraw(*parts: Part) -> None:
    """Print for people in place of what was printed before; without a terminal, after it and a blank line."""
    if sys.stdout.isatty():
        SafeConsole(stderr=False).clear()
    else:
        click.echo()
    show(*parts)
    sys.stdout.flush()


def show_document(document: object, output: str) -> None:
    """Print for programs."""
    click.echo(document_text(document, output), nl=False)


def show_json(text: bytes) -> None:
    """Print JSON that has been encoded already."""
    is_plain = text.isascii() and b"\x7f" not in text  # nearly always, and then hundreds of megabytes are not copied
    sys.stdout.buffer.write(text if is_plain else escape_json(text.decode()).encode())


def document_text(document: object, output: str) -> str:
    if output == "json":
        return escape_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return escape(text)  # what is left to escape is within double quotes, where these escapes mean the character


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes texts with control characters in double quotes."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if has_harmful(text):
        encodable = text.encode("utf-8", "backslashreplace").decode()  # a path may have bytes that are no text
        return dumper.represent_scalar(_TEXT_TAG, encodable, style='"')
    return dumper.represent_scalar(_TEXT_TAG, text)


_Dumper.add_representer(str, _represent_text)


def count(number: int, singular: str, plural: str = "") -> str:
    """Return `1 node`, `5,000 nodes`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def is_terminal() -> bool:
    """Tell whether there is a terminal that can be drawn on."""
    console = SafeConsole(stderr=not sys.stdout.isatty())
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def busy(title: str) -> Iterator[None]:
    """Show on stderr what takes a while, if that is a terminal. Nothing else may be written there meanwhile."""
    console = SafeConsole(stderr=True)
    with console.status(Text(title)) if console.is_terminal else nullcontext():
        yield


@contextmanager
def progress(title: str) -> Iterator[ReportProgress]:
    """Show a bar on stderr, if that is a terminal and it takes long; `report_progress(done, total)` moves it."""
    console = SafeConsole(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title, markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(title, total=None)
    started = time.monotonic()

    def report_progress(done: int, total: int) -> None:
        if time.monotonic() - started > _PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        yield report_progress
    finally:
        bar.stop()
