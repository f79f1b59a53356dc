"""What the component ledger can be told: where records are kept, under which name, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.app.component import PlaceOf
from wukong.cluster.ledger.address import find_problem

MOST_NAME = 253


class LedgerOptions(msgspec.Struct, frozen=True, rename="camel"):
    file: Annotated[
        str,
        Meta(
            description="The ledger: a file of SQLite.  [default: ledger.db in the working directory]",
            extra={"flag": "--ledger", "metavar": "FILE", "shows_default": False},
        ),
    ] = "ledger.db"
    cluster_name: Annotated[
        str, Meta(description="Of this cluster in the ledger, which may hold several.", extra={"metavar": "NAME"})
    ] = "default"
    keep: Annotated[int, Meta(description="Records of each workload that stay in the history.", ge=1, le=1_000_000)] = (
        1000
    )


def find_problems(options: LedgerOptions, place_of: PlaceOf) -> Iterator[str]:
    if problem := find_problem(options.file):
        yield f"{place_of('file')}: {problem}"
    name = options.cluster_name
    if not name or len(name) > MOST_NAME or not name.isprintable():
        yield f"{place_of('cluster_name')}: expected a name of at most {MOST_NAME} characters, got {name!r:.100}."
