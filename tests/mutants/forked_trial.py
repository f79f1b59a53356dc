"""Tries mutants of functions in forks of one pytest session: nothing is imported or collected twice.

    the session collects the tests ─► for each mutant: fork ─► the child puts the changed code in the place of the
    function's and runs the tests that enter it, up to the first that fails ─► its words come back through a pipe

The work tree is never changed. What happens when a module is imported (constants, defaults, decorators, the bodies of
classes) cannot be tried so, and what a function gave at import stays: who survives here is tried in a process of its
own by __main__.py, which calls this.

    pytest -p mutants.forked_trial --mutants=FILE --quick TESTS...
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

import msgspec
import pytest
from _pytest.main import pytest_runtestloop as run_loop

from mutants.mutations import Mutant


class Task(msgspec.Struct):
    """A mutant, the function it is in, and the tests to try it with."""

    path: str
    name: str
    start: int
    end: int
    text: str
    tests: list[str]
    limit_seconds: float

    @classmethod
    def of(cls, mutant: Mutant, name: str, tests: list[str], limit_seconds: float) -> Task:
        return cls(mutant.path, name, mutant.start, mutant.end, mutant.text, tests, limit_seconds)

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


class TaskResult(msgspec.Struct):
    """`noticed_by` is empty where all passed; `problem` says why it could not be tried."""

    noticed_by: str = ""
    problem: str = ""
    seconds: float = 0.0  # of processor time


def find_function(source: bytes, start: int, end: int) -> str:
    """The name of the outermost function whose body holds these bytes; "" where they run at the import."""
    text = source[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def hold(first: ast.stmt, last: ast.stmt) -> bool:
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        first_byte = starts[first.lineno - 1] + first.col_offset
        return first_byte <= start and end <= starts[last.end_lineno - 1] + last.end_col_offset

    body, names = ast.parse(source).body, list[str]()
    while node := next((node for node in body if hold(node, node)), None):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return ".".join([*names, node.name]) if hold(node.body[0], node.body[-1]) else ""
            case ast.ClassDef():
                names.append(node.name)
                body = node.body
            case _:
                return ""
    return ""


def name_module(path: str) -> str:
    """The dotted name of a file below src."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def swap_function(file: Path, name: str, source: bytes) -> int:
    """Give the functions of this name, and those inside of it, the code of another source. Returns how many it were."""
    codes = {code.co_qualname: code for code in walk_codes(compile(source, str(file), "exec", dont_inherit=True))}
    count = 0
    for function in find_functions(file, name):
        code = codes.get(function.__code__.co_qualname)
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code
            count += 1
    return count


def walk_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from walk_codes(constant)


def find_functions(file: Path, name: str) -> list[FunctionType]:
    gc.unfreeze()  # or the collector would not name what was there before the first test
    return [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__code__.co_filename == str(file)
        and (function.__code__.co_qualname == name or function.__code__.co_qualname.startswith(f"{name}.<locals>"))
    ]


class ForkedTrial:
    """Takes the place of the loop over tests."""

    def __init__(self, file: Path, root: Path) -> None:
        self.tasks = msgspec.json.decode(file.read_bytes(), type=list[Task])
        self.output, self.root = file.with_suffix(".results"), root
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        with self.output.open("wb") as output:
            for task in self.tasks:
                result = self._try(session, task, [items[test] for test in task.tests if test in items])
                output.write(msgspec.json.encode(result) + b"\n")
                output.flush()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def _try(self, session: pytest.Session, task: Task, items: list[pytest.Item]) -> TaskResult:
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with suppress(BaseException):
                os.write(writing, msgspec.json.encode(self._run(session, task, items)))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            words = pipe.read()
        _, status, usage = os.wait4(child, 0)
        seconds = usage.ru_utime + usage.ru_stime
        if os.WIFSIGNALED(status):
            signal_name = signal.Signals(os.WTERMSIG(status)).name
            return TaskResult(noticed_by=f"no end ({signal_name})", seconds=seconds)
        result = msgspec.json.decode(words, type=TaskResult) if words else TaskResult(problem="the child ended")
        return msgspec.structs.replace(result, seconds=seconds)

    def _run(self, session: pytest.Session, task: Task, items: list[pytest.Item]) -> TaskResult:
        """In the child: what the tests say."""
        os.setsid()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, task.limit_seconds)
        signal.alarm(int(10 * task.limit_seconds))
        file = self.root / task.path
        importlib.import_module(name_module(task.path))  # a test may do that only when it runs
        if not swap_function(file, task.name, task.apply(file.read_bytes())):
            return TaskResult(problem="no such function is alive")
        session.items = items
        with suppress(session.Failed, session.Interrupted):
            run_loop(session)
        with suppress(BaseException):
            session._setupstate.teardown_exact(None)
        return TaskResult(noticed_by=self.failed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, required=True, help="what to try: a list of tasks as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ForkedTrial(config.getoption("--mutants"), config.rootpath))
