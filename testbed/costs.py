"""`pytest --costs FILE`: what every test took, a JSON line each. Loaded by tests/conftest.py; nothing else knows of it.

    {"test": …, "worker": "gw0", "began": seconds, "seconds": …, "processor": …, "children": …}

`processor` is what the worker computed, `children` what processes did that ended meanwhile and were waited for: a
control plane counts where it ends, and the two that a whole run shares nowhere. At its end every process writes a line
without a test, the totals; those of the first one, "main", are of all workers, with what they collected.
`python -m testbed.costs FILE` shows the sums by folder and the dearest tests.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

DEAREST = 60
MAIN = "main"


class Cost(msgspec.Struct, frozen=True):
    test: str
    worker: str
    began: float
    seconds: float
    processor: float
    children: float


def processor_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class Recorder:
    def __init__(self, file: Path) -> None:
        self.file, self.worker = file, os.environ.get("PYTEST_XDIST_WORKER", MAIN)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.time()
        processor, children = (processor_seconds(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        result = yield
        self.write(item.nodeid, began, processor, children)
        return result

    def pytest_sessionfinish(self) -> None:
        self.write("", time.time(), 0.0, 0.0)

    def write(self, test: str, began: float, processor: float, children: float) -> None:
        cost = Cost(
            test,
            self.worker,
            round(began, 2),
            round(time.time() - began, 2),
            round(processor_seconds(resource.RUSAGE_SELF) - processor, 3),
            round(processor_seconds(resource.RUSAGE_CHILDREN) - children, 3),
        )
        with self.file.open("ab") as lines:  # one write each: workers share the file
            lines.write(msgspec.json.encode(cost) + b"\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", type=Path, help="append what every test took, a JSON line each")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--costs")
    if file is not None:
        config.pluginmanager.register(Recorder(file.absolute()))


def show(file: Path) -> str:
    """Processor seconds by folder and of the dearest tests."""
    costs = [msgspec.json.decode(line, type=Cost) for line in file.read_bytes().splitlines()]
    folders: dict[str, list[Cost]] = defaultdict(list)
    for cost in costs:
        if cost.test:
            folders["/".join(cost.test.split("::")[0].split("/")[:2])].append(cost)
    whole = [cost for cost in costs if not cost.test and cost.worker == MAIN]
    rows = [("all, with collection", whole), *sorted(folders.items(), key=lambda row: -total(row[1]))]
    lines = [f"{total(part):8.1f} s  {sum(bool(cost.test) for cost in part):6}  {name}" for name, part in rows]
    dearest = sorted((cost for cost in costs if cost.test), key=lambda cost: -(cost.processor + cost.children))
    lines += ["", "    own  children   waiting"]
    for cost in dearest[:DEAREST]:
        lines.append(f"{cost.processor:7.1f} {cost.children:9.1f} {cost.seconds - cost.processor:9.1f}  {cost.test}")
    return "\n".join(lines)


def total(costs: list[Cost]) -> float:
    return sum(cost.processor + cost.children for cost in costs)


if __name__ == "__main__":
    print(show(Path(sys.argv[1])))  # noqa: T201
