"""Groups of commands: a table from name to module and help, of which only the module that is run gets imported.

Used by `main` for the verbs, and by verbs that are groups themselves. It imports click and nothing heavier.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from wukong.errors import nearest


class Verb(NamedTuple):
    """Where a command is. Its module exposes `command: click.Command`; `help` is its first line of help."""

    module: str
    help: str


class VerbGroup(click.Group):
    """A click group that reads its commands from a table and imports one only when it is run."""

    def __init__(self, *arguments: Any, verbs: Mapping[str, Verb], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module = self.verbs[cmd_name].module
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command), f"{module}.command is no click command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.verbs and not args[0].startswith("-"):
            ctx.fail(self.describe_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])

    def describe_unknown(self, name: str) -> str:
        hint = nearest(name, self.verbs) or f" Choose one of: {', '.join(self.verbs)}."
        return f'No such command "{name}".{hint}'
