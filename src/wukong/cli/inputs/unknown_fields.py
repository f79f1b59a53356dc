"""Warns of fields of manifests that Kubernetes does not know. Used by every command that reads manifests of people."""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.unknown_fields import find_unknown_fields
from wukong.cli.views.console import say
from wukong.ports import Document

_MOST_NAMED = 20  # of one file


def warn_of_unknown_fields(place: str, documents: Iterable[Document]) -> None:
    """Print a line for each, with its place and the nearest field there is; `place` is the file."""
    problems = [
        f"{place}: {document.get('kind')} {_name_of(document)}: {problem}"
        for document in documents
        for problem in find_unknown_fields(document)
    ]
    for problem in problems[:_MOST_NAMED]:
        say(f"warning: {problem}")
    if len(problems) > _MOST_NAMED:
        say(f"warning: {place}: {len(problems) - _MOST_NAMED} unknown fields more.")
    if problems:
        say("warning: an API server drops unknown fields, so they change nothing; kubectl apply refuses them.")


def _name_of(document: Document) -> str:
    meta = document.get("metadata")
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""
