"""The options by which the extender decides, and the files they name: the same for explain (placing.py) and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from wukong.api.placement import STRATEGIES
from wukong.cluster import place_name, read_text
from wukong.errors import InputError
from wukong.replies.extender.verbs import Settings

_T = TypeVar("_T")
_NO_STRATEGY = "none"

PRICES = click.option("--prices", metavar="FILE", help="What nodes cost.  [default: labels, then list prices]")
LATENCIES = click.option("--latencies", metavar="FILE", help="Milliseconds between zones, for the rule latency.")
CRITICAL_PRIORITY = click.option(
    "--critical-priority",
    default=Settings().critical_priority,
    show_default=True,
    metavar="N",
    help="Pods at or above it go on-demand first.",
)
DEFAULT_STRATEGY = click.option(
    "--default-strategy",
    type=click.Choice([*STRATEGIES, _NO_STRATEGY]),
    default=Settings().strategy,
    show_default=True,
    help="Where no policy matches and none is named default.",
)


def strategy_of(given: str) -> str:
    return "" if given == _NO_STRATEGY else given


def read_file(path: str | None, read: Callable[[bytes], _T]) -> _T | None:
    """What `read` makes of a file, which its complaints then name; None where none is given."""
    if path is None:
        return None
    data = bytes(read_text(path))
    try:
        return read(data)
    except InputError as error:
        raise error.at(place_name(path)) from None
