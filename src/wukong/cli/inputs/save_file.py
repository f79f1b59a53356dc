"""The option --save: keeps the cluster in which a scenario ends as a snapshot, for -s of the next command."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from wukong.cli.views.console import note
from wukong.cluster.snapshot_file import encode_snapshot, refuse_unwritable, summarize, write_snapshot
from wukong.embedded.snapshot.save import list_snapshot
from wukong.embedded.store.documents import format_time
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.ports import Document

F = TypeVar("F", bound=Callable[..., Any])


def add_save_option(command: F) -> F:
    return click.option(
        "--save", metavar="FILE", help="Keep the cluster at the end as a snapshot, for -s; gzip if it ends in .gz."
    )(command)


class SaveFile:
    """Holds the snapshot between the end of a play and the end of the command. Without a path nothing is kept."""

    def __init__(self, path: str | None) -> None:
        """Raises InputError if nothing can be written there."""
        self.path, self.numbers = path, Tally[str]()
        self._text = b""
        if path is not None:
            try:
                refuse_unwritable(path)
            except InputError as error:
                raise InputError(f"--save {error}") from None

    def keep(self, world: World) -> None:
        """Take the snapshot of a world. At once as text: a hundred thousand pods take a tenth of the room."""
        if self.path is None:
            return
        documents: list[Document | msgspec.Raw] = []
        for document in list_snapshot(world.server):
            self.numbers[document["kind"]] += 1
            documents.append(msgspec.Raw(msgspec.json.encode(document)))
        self._text = encode_snapshot(documents, format_time(world.clock.now()))

    def write(self, *, is_interrupted: bool) -> None:
        """Write the file: whole, or not at all. The cluster of a story that was cut short is not kept."""
        if self.path is None:
            return
        if is_interrupted:
            note(f"{self.path} was not written: the story was interrupted.")
            return
        write_snapshot(self.path, self._text)
        note(f"wrote {self.path}: {summarize(self.numbers)}.")
