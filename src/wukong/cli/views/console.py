"""Printing: documents for programs, tables for people, notes beside them, a progress bar while it takes.

The result goes to stdout, the rest to stderr. Colour only on a terminal, and not if NO_COLOR is set (rich sees to it).
What is printed is decided in the other views. Names and texts come from clusters and files of anybody: everything that
is printed passes through here, where control characters are escaped and rich's markup is not read.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import click
import yaml
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from wukong.cli.views.escaping import escape, escape_json, escape_line, has_harmful

_PATIENCE_SECONDS = 0.5
_MOST_NAMES = 3
_TEXT_TAG = "tag:yaml.org,2002:str"
_MOST_FOLDED_ROWS = 500  # folding thousands of rows takes seconds

ReportProgress = Callable[[int, int], None]


def note(text: str) -> None:
    """Print something to know beside the result."""
    say(f"note: {text}")


def say(line: str) -> None:
    """Print a line on stderr."""
    click.echo(escape_line(line), err=True)


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


class Table:
    """A table without lines, as kubectl prints it: capital headings, `numbers` right-aligned, `whole` never folded."""

    def __init__(self, *headings: str, numbers: Sequence[str] = (), whole: Sequence[str] = ()) -> None:
        self.headings, self.numbers, self.whole = headings, frozenset(numbers), frozenset([*numbers, *whole])
        self.rows: list[tuple[tuple[str, ...], str]] = []  # cells, style

    def add_row(self, *cells: str, style: str = "") -> None:
        self.rows.append((tuple(map(escape_line, cells)), style))

    def lines(self) -> Iterator[str]:
        """Yield the table as plain text: what a program reads, and fast for thousands of rows."""
        texts = [self.headings, *(cells for cells, _ in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        shape = [
            (width, ">" if name in self.numbers else "<") for name, width in zip(self.headings, widths, strict=True)
        ]
        for cells in texts:
            padded = (f"{cell:{side}{width}}" for cell, (width, side) in zip(cells, shape, strict=True))
            yield "  ".join(padded).rstrip()

    def __rich__(self) -> RichTable:
        """Return the table for a terminal: in colour, long cells folded."""
        table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for heading in self.headings:
            is_number = heading in self.numbers
            justify: JustifyMethod = "right" if is_number else "left"
            table.add_column(heading, justify=justify, no_wrap=heading in self.whole, overflow="fold")
        for cells, style in self.rows:
            table.add_row(*cells, style=style)
        return table


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
        if isinstance(part, Table) and len(part.rows) > _MOST_FOLDED_ROWS:
            console.print("\n".join(part.lines()), soft_wrap=True)
        else:
            console.print(part, soft_wrap=not isinstance(part, Table))


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


def name_some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


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
