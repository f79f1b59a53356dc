"""Which functions of src each quick test enters: a pytest plugin that writes it to a file, and what reads it.

    pytest -p mutants.function_map --function-map=FILE --quick

A function is known by its path, name and first line, so a map is good until the tree changes. Python calls a trace
function at every call; it is asked for nothing else, except for a few calls of each function in each test, of which
the lines are kept, too: what no test reaches is a gap before any mutant is drawn. Used by __main__.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

LOOKS = 6  # calls of a function in one test of which the lines are kept
_codes: dict[int, CodeType | None] = {}  # by their number in memory, which stays theirs: they are kept here


class Function(NamedTuple):
    path: str
    name: str  # such as Class.method or function.<locals>.inner
    line: int


class TimedTest(NamedTuple):
    test: str
    seconds: float  # of processor time


class FunctionMap:
    """What a run of the tests has shown."""

    def __init__(self, runs: dict[Function, list[TimedTest]], lines: dict[str, set[int]]) -> None:
        self.runs, self.lines = runs, lines

    @classmethod
    def read(cls, file: Path) -> FunctionMap:
        document = json.loads(file.read_bytes())
        functions = [Function(*entry) for entry in document["functions"]]
        runs: dict[Function, list[TimedTest]] = {}
        for test, (seconds, numbers) in document["tests"].items():
            for number in numbers:
                runs.setdefault(functions[number], []).append(TimedTest(test, seconds))
        return cls(runs, {path: set(lines) for path, lines in document["lines"].items()})

    def list_tests(self, path: str, name: str) -> list[TimedTest]:
        """The tests that enter a function, or one within it, the shortest first."""
        tests = {
            run.test: run
            for function, runs in self.runs.items()
            if function.path == path and (function.name == name or function.name.startswith(f"{name}."))
            for run in runs
        }
        return sorted(tests.values(), key=lambda run: (run.seconds, run.test))


def record_map(root: Path, file: Path, base: Path) -> None:
    """Run all quick tests once, and write the map. `base` is the folder in which the package of this module is."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "tests"), str(base)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants.quick_examples"]
    command += ["-p", "mutants.function_map", f"--function-map={file.resolve()}", "--quick", "--tb=no", "tests"]
    subprocess.run(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)


class Recorder:
    """Follows one run of the tests."""

    def __init__(self, file: Path, root: Path) -> None:
        self.file, self.root, self._sources = file, root, f"{root / 'src'}/"
        self.tests: dict[str, tuple[float, list[int]]] = {}
        self._entered: dict[int, int] = {}  # code → how often in this test
        self._lines: dict[int, set[int]] = {}

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        number = id(frame.f_code)
        if number not in _codes:
            _codes[number] = frame.f_code if frame.f_code.co_filename.startswith(self._sources) else None
        if _codes[number] is None:
            return None
        count = self._entered[number] = self._entered.get(number, 0) + 1
        if count > LOOKS:
            return None
        lines = self._lines.setdefault(number, set())

        def trace_lines(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return trace_lines

        return trace_lines

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._entered = {}
        begin = time.process_time()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.tests[item.nodeid] = (round(time.process_time() - begin, 4), [*self._entered])

    def pytest_sessionfinish(self) -> None:
        numbers = {code: index for index, code in enumerate(code for code in _codes if _codes[code] is not None)}
        functions = [describe_code(code, self.root) for code in _codes.values() if code is not None]
        lines: dict[str, set[int]] = {}
        for code, reached in self._lines.items():
            lines.setdefault(functions[numbers[code]].path, set()).update(reached)
        document = {
            "functions": functions,
            "tests": {
                test: (seconds, [numbers[code] for code in codes]) for test, (seconds, codes) in self.tests.items()
            },
            "lines": {path: sorted(reached) for path, reached in lines.items()},
        }
        self.file.write_text(json.dumps(document), "utf-8")


def describe_code(code: CodeType, root: Path) -> Function:
    return Function(str(Path(code.co_filename).relative_to(root)), code.co_qualname, code.co_firstlineno)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--function-map", type=Path, required=True, help="where to write which tests enter which function")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config.getoption("--function-map"), config.rootpath))
