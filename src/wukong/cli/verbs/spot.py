"""`wukong spot`: which nodes leave, which did and what became of it; and what would happen if a node got notice now."""

from __future__ import annotations

import click

from wukong.cli.command_group import Verb, VerbGroup

PARTS: dict[str, Verb] = {
    "history": Verb("wukong.cli.verbs.spot_history", "Show what became of notices, and of the pods that had to leave."),
    "plan": Verb("wukong.cli.verbs.spot_plan", "Say where the pods of nodes would go if these got notice now."),
    "status": Verb("wukong.cli.verbs.spot_status", "Show which nodes leave, until when, and whose pods move."),
}


@click.group("spot", cls=VerbGroup, verbs=PARTS)
def command() -> None:
    """Show which nodes leave, which did, and what would happen if one did."""
