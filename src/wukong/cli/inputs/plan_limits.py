"""The option --min-available: `3`, `80%`, or either for one workload, `deploy/web=3`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wukong.cli.inputs.workload_names import read_workload_in
from wukong.errors import InputError
from wukong.forecast.verdict import Limits

_NUMBER = re.compile(r"\d{1,6}%?")


def read_min_available(texts: Sequence[str], namespace: str) -> Limits:
    """What must stay available. Raises InputError with every problem."""
    limits: dict[str, int | str] = {}
    problems: list[str] = []
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            key = str(read_workload_in(name, namespace)[1]) if name else ""
            limits[key] = _read_number(number)
        except InputError as error:
            problems += error.at("--min-available").problems
    if problems:
        raise InputError(*problems)
    return Limits(limits)


def _read_number(text: str) -> int | str:
    if not _NUMBER.fullmatch(text) or (text.endswith("%") and int(text[:-1]) > 100):
        raise InputError(f'expected a number of pods such as 3, or a share such as 80%, got "{text:.50}".')
    return text if text.endswith("%") else int(text)
