"""The options --start-seconds and --stop-seconds: how long pods take, all of them or those of one workload.

For the verbs that play a scenario. Reads `20` and `deploy/web=40`; what kubelets make of it is in the embedded cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.durations import ALL, MOST_SECONDS, by_name, read_workload
from wukong.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
FindNamespace = Callable[[], str]
_OPTIONS = {
    "start_seconds": "New pods take so long until they run: all (20), or a workload's (deploy/web=40). Repeat it.",
    "stop_seconds": "Deleted pods take so long, within their grace period: all (20), or a workload's (sts/db=40).",
}


def add_duration_options(command: F) -> F:
    """Decorate a command with both options; it gets their texts as `start_seconds` and `stop_seconds`."""
    for name, text in reversed(_OPTIONS.items()):
        command = click.option(_flag_of(name), name, multiple=True, metavar="[KIND/NAME=]SECONDS", help=text)(command)
    return command


def add_durations(scenario: Scenario, texts: Mapping[str, Sequence[str]], find_namespace: FindNamespace) -> None:
    """In place: what the options say, by their names, counts for more than the scenario's own. Raises InputError.

    `find_namespace` is asked where a workload is named without a namespace.
    """
    problems: list[str] = []
    for name in _OPTIONS:
        seconds = by_name(getattr(scenario, name))
        for text in texts.get(name, ()):
            try:
                seconds |= [read_duration(text, find_namespace)]
            except InputError as error:
                problems += error.at(_flag_of(name)).problems
        setattr(scenario, name, seconds)
    if problems:
        raise InputError(*problems)


def list_arguments(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The options as they were given, for a command that plays the same again."""
    return [argument for name in _OPTIONS for text in texts.get(name, ()) for argument in (_flag_of(name), text)]


def read_duration(text: str, find_namespace: FindNamespace) -> tuple[str, float]:
    """`20` → all and 20.0, `deploy/web=40` → deploy/default/web and 40.0. Raises InputError for anything else."""
    name, has_name, number = text.rpartition("=")
    try:
        seconds = float(number)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MOST_SECONDS:
        expected = f"seconds from 0 to {MOST_SECONDS:,}, such as 20 or deploy/web=40"
        raise InputError(f'expected {expected}, got "{text:.200}".')
    if not has_name:
        return ALL, seconds
    read_workload(name)
    word, *names = name.split("/")
    return "/".join([word, *(names if len(names) == 2 else [find_namespace(), *names])]), seconds


def _flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"
