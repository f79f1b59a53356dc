"""Reads a recording of scheduling decisions: JSON lines, one scenario each (tests/golden/README.md has the format).

Called by `wukong replay`. Checks that a scenario can be replayed at all; comparing is wukong.engine.replay's business.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator

import msgspec

from wukong.api.decode import decode_objects, readable
from wukong.api.json_values import check_depth, decode_json
from wukong.cli.views.console import ReportProgress
from wukong.cluster import place_name, read_lines
from wukong.cluster.checks import find_oversized_numbers, problems_of
from wukong.engine.replay import RecordedAttempt, Scenario
from wukong.errors import InputError

_OUTCOMES = ("bound", "unschedulable")
_MOST_BAD_LINES = 10

_encode = msgspec.msgpack.Encoder().encode  # refuses numbers beyond 64 bits
_decoder = msgspec.json.Decoder(Scenario)


def read_scenarios(path: str, report_progress: ReportProgress) -> Iterator[tuple[int, Scenario]]:
    """Line number and scenario. After a bad line only further bad lines are looked for, and raised together."""
    problems: list[str] = []
    number = 0
    for number, line in read_lines(path, report_progress):
        place = f"{place_name(path)}: line {number}"
        try:
            scenario = _decode(line)
        except InputError as error:
            problems += error.at(place).problems
            if len(problems) >= _MOST_BAD_LINES:
                break
            continue
        if not problems:
            yield number, scenario
    if problems:
        raise InputError(*problems)
    if not number:
        raise InputError(f"{place_name(path)}: expected scenarios, one JSON object per line, found none.")


def _decode(line: bytes) -> Scenario:
    try:
        check_depth(line)
        scenario = decode_json(line, _decoder, "Each line is one scenario, as one JSON object.")
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    try:
        _encode(scenario)
        problems = [*_find_object_problems(scenario), *_find_step_problems(scenario)]
    except OverflowError:
        problems = list(find_oversized_numbers(msgspec.structs.replace(scenario, workloads=[])))
    if problems:
        raise InputError(*problems)
    return scenario


def _find_object_problems(scenario: Scenario) -> Iterator[str]:
    for path, entries in (("$.nodes", scenario.nodes), ("$.existing", scenario.existing)):
        for index, entry in enumerate(entries):
            yield from (f"{path}[{index}]: {problem}" for problem in problems_of(entry, thorough=True))
    for index, step in enumerate(scenario.steps):
        yield from (f"$.steps[{index}].pod: {problem}" for problem in problems_of(step.pod, thorough=True))
    for path, keys in {
        "$.nodes": [node.key for node in scenario.nodes],
        "$.existing and $.steps": [pod.key for pod in (*scenario.existing, *(step.pod for step in scenario.steps))],
    }.items():
        yield from (f"{path}: {key} is there {times} times." for key, times in Tally(keys).items() if times > 1)
    for index, raw in enumerate(scenario.workloads):
        try:
            list(decode_objects(bytes(raw)))
        except InputError as error:
            yield from error.at(f"$.workloads[{index}]").problems


def _find_step_problems(scenario: Scenario) -> Iterator[str]:
    for index, step in enumerate(scenario.steps):
        if not step.attempts:
            yield f"$.steps[{index}].attempts: expected at least one attempt, got none."
        for number, attempt in enumerate(step.attempts):
            yield from _find_attempt_problems(attempt, f"$.steps[{index}].attempts[{number}]")


def _find_attempt_problems(attempt: RecordedAttempt, path: str) -> Iterator[str]:
    if attempt.outcome not in _OUTCOMES:
        yield f"{path}.outcome: expected {' or '.join(_OUTCOMES)}, got {attempt.outcome!r}."
    if attempt.outcome == "bound" and not attempt.node:
        yield f"{path}.node: expected the node the pod was bound to, got none."
    if attempt.scored:
        columns = {**{f"scores.{plugin}": points for plugin, points in attempt.scores.items()}, "final": attempt.final}
        for name, points in columns.items():
            if len(points) != len(attempt.feasible):
                expected = f"{len(attempt.feasible)} numbers, one for each feasible node"
                yield f"{path}.{name}: expected {expected}, got {len(points)}."
