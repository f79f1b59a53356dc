"""`make mutants` itself: what it changes, where, which tests it asks, and that the work tree stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mutants import __main__ as command
from mutants.changed_lines import find_changed_lines, parse_diff
from mutants.covering_tests import ImportGraph
from mutants.equivalents import Equivalent, find_reason, read_equivalents
from mutants.fork_runs import choose_tests
from mutants.forked_trial import find_function, swap_function
from mutants.function_map import Function, FunctionMap, TimedTest
from mutants.mutations import Mutant, changed_texts, compiles, find_mutants
from mutants.old_faults import OldFault, read_old_faults
from mutants.tree_copy import RunResult

ROOT = Path(__file__).parents[2]


def mutated(text: str, lines: set[int] | None = None) -> list[str]:
    """What becomes of a source, without line breaks at its end."""
    source = text.encode()
    return [mutant.apply(source).decode().rstrip("\n") for mutant in find_mutants("a.py", source, lines)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a >= b", ["x = a > b"]),
        ("x = (a) == (b)", ["x = (a) != (b)"]),
        ("x = a < b <= c", ["x = a <= b <= c", "x = a < b < c"]),
        ("x = a in b", ["x = a not in b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a and b and c", ["x = a or b and c", "x = a and b or c"]),
        ("x = not a", ["x = (a)"]),
        ("x = 1", ["x = 2"]),
        ("x = 0.5", ["x = 1.5"]),
        ("x = True", ["x = False"]),
        ("x = 'word'", ["x = 'wordx'"]),
        ("x = a + b", ["x = a - b"]),
        ("x = a // b", ["x = a * b"]),
        ("x = a | b", ["x = a & b"]),
        ("f(a, b, c)", ["pass", "f(b, a, c)"]),
        ("x = f(a, key=b)", []),
        ("x = f(a, *b)", []),
        ("x = f(a, a)", []),
        ("x = max(a, b)", []),
        ("x = zip(a, key=1, strict=True)", ["x = zip(a, key=2, strict=True)"]),
        ("x = zip(a, strict=False)", ["x = zip(a, strict=True)"]),
        ("x = np.minimum(a, b)", []),
        ("x = max(a, b, key=c)", ["x = max(b, a, key=c)"]),
        ("x.a = b", ["pass"]),
        ("x += a", ["pass"]),
        ("del a", ["pass"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not (a)]"]),
        ("x = a if b else c", ["x = a if not (b) else c"]),
        ("if a:\n    b = c", ["if not (a):\n    b = c"]),
        ("while a:\n    break", ["while not (a):\n    break", "while a:\n    pass"]),
        ("while True:\n    continue", ["while True:\n    pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("def f():\n    return False", ["def f():\n    return True"]),
        ("def f():\n    raise E", ["def f():\n    pass"]),
        ("def f(a=1):\n    g", ["def f(a=2):\n    g"]),
        ("x = a < b  # größer\ny = a > b", ["x = a <= b  # größer\ny = a > b", "x = a < b  # größer\ny = a >= b"]),
    ],
)
def test_each_mutant_has_one_small_mistake(source: str, expected: list[str]) -> None:
    assert mutated(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "x: int | None",
        "X = Literal['a', 'b']",
        "def f(a: dict[str, int] | None) -> int | None:\n    pass",
        "x = 'a text of words'",
        "x = f'{a < 1}'",
        "log.warning('failed', a)",
        "from a import b",
        "if TYPE_CHECKING:\n    x = 1",
        "__all__ = ['a']",
        "assert a < b",
        "def f():\n    return None",
        "x = None",
        "class A(B | C):\n    pass",
    ],
)
def test_what_no_test_should_notice_is_left_alone(source: str) -> None:
    assert mutated(source) == []


def test_only_the_lines_asked_for_are_mutated() -> None:
    source = "x = 1\ny = (\n    2\n)\nz = 3\n"
    assert mutated(source, {3}) == ["x = 1\ny = (\n    3\n)\nz = 3"]


def test_a_change_is_shown_as_its_lines() -> None:
    source = b"def f():\n    return (\n        a +\n        b\n    )\nx = 1\n"
    (returned,) = [mutant for mutant in find_mutants("a.py", source) if mutant.kind == "return"]
    assert changed_texts(returned, source) == ("return (\n        a +\n        b\n    )", "return None")
    (number,) = [mutant for mutant in find_mutants("a.py", source) if mutant.kind == "constant"]
    assert changed_texts(number, source) == ("x = 1", "x = 2")


def test_the_same_seed_draws_the_same_and_spreads_over_lines() -> None:
    source = b"".join(b"x = a < 1 and b < 2\n" for _ in range(10))
    mutants = find_mutants("a.py", source)
    assert len(mutants) == 50
    drawn = command.draw(mutants, 10, seed=3)
    assert drawn == command.draw(mutants, 10, seed=3) != command.draw(mutants, 10, seed=4)
    assert [mutant.line for mutant in drawn] == list(range(1, 11))
    assert command.draw(mutants, 99, seed=1) == mutants
    odd = [mutant for mutant in mutants if mutant.line % 2]
    assert command.draw(mutants, 99, 1, lambda mutant: mutant.line % 2 == 1) == odd
    assert {mutant.line % 2 for mutant in command.draw(mutants, 5, 1, lambda mutant: mutant.line % 2 == 1)} == {1}


def test_broad_tests_follow_the_nearest() -> None:
    first, second, _ = command.BROAD
    assert command.order_tests(["a", "b", "c", first, "d"]) == ["a", "b", first, "c", "d"]
    assert command.order_tests([second, "a", "b", first]) == [second, "a", first, "b"]
    assert command.order_tests(["a"]) == ["a"]
    assert all((ROOT / test).is_file() for test in command.BROAD)


def test_new_lines_are_read_from_a_diff() -> None:
    hunks = ["@@ -3 +3,2 @@ def f():\n-a\n+b\n+c", "@@ -9,2 +10,0 @@\n-d\n-e", "@@ -20 +19 @@\n-f\n+g"]
    diff = "\n".join(["--- a/x.py", "+++ b/x.py", *hunks, "--- a/y.py", "+++ b/y.py", "@@ -0,0 +1 @@", "+h"])
    assert parse_diff(diff) == {"x.py": {3, 4, 19}, "y.py": {1}}


def make_project(folder: Path) -> None:
    """A project in git with a module, a test that sees half of what it does, and a change on a branch."""
    files = {
        "src/wukong/__init__.py": "",
        "src/wukong/sizes/__init__.py": "from wukong.sizes.limits import is_small\n",
        "src/wukong/sizes/limits.py": "def is_small(number):\n    return number < 10\n",
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--quick', action='store_true')\n",
        "tests/sizes/test_limits.py": (
            "from wukong.sizes import is_small\n\n\n"
            "def test_small():\n    assert is_small(3)\n    assert not is_small(99)\n"
        ),
        "tests/other/test_other.py": "def test_nothing():\n    pass\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for words in ("init -q -b main", "add .", "commit -qm first", "switch -qc branch"):
        subprocess.run(["git", *identity, *words.split()], cwd=folder, check=True)
    limits = folder / "src/wukong/sizes/limits.py"
    limits.write_text(f"{limits.read_text('utf-8')}\n\ndef is_large(number):\n    return number > 20\n", "utf-8")


def test_a_change_is_what_differs_from_the_base_committed_or_not(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "src/wukong/new.py").write_text("x = 1\ny = 2\n", "utf-8")
    assert find_changed_lines(tmp_path, "main") == {
        "src/wukong/sizes/limits.py": {3, 4, 5, 6},
        "src/wukong/new.py": {1, 2},
    }


def test_tests_are_found_by_what_they_import_nearest_first(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "src/wukong/user.py").write_text("import wukong.sizes.limits\n", "utf-8")
    (tmp_path / "tests/other/test_user.py").write_text("from wukong import user\n", "utf-8")
    (tmp_path / "tests/other/test_direct.py").write_text("from wukong.sizes.limits import is_small\n", "utf-8")
    assert ImportGraph(tmp_path).list_tests("src/wukong/sizes/limits.py") == [
        (1, "tests/sizes/test_limits.py"),
        (1, "tests/other/test_direct.py"),
        (2, "tests/other/test_user.py"),
    ]


def test_what_is_loaded_by_its_name_and_used_through_a_conftest_is_tested_too(tmp_path: Path) -> None:
    make_project(tmp_path)
    files = {
        "src/wukong/cli/main.py": "VERBS = {'get': 'wukong.cli.verbs.get'}\n",
        "src/wukong/cli/verbs/get.py": "x = 1\n",
        "tests/cli/conftest.py": "import wukong.cli.main\n",
        "tests/cli/test_aaa.py": "",
        "tests/cli/test_get.py": "",
        "tests/abc/test_main.py": "import wukong.cli.main\nimport wukong.errors\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    assert ImportGraph(tmp_path).list_tests("src/wukong/cli/verbs/get.py") == [
        (3, "tests/cli/test_get.py"),
        (3, "tests/cli/test_aaa.py"),
        (2, "tests/abc/test_main.py"),
    ]


@pytest.mark.slow
def test_every_module_of_the_tree_has_tests() -> None:
    """A module without one would have its mutants counted as unnoticed whatever the tests do."""
    graph = ImportGraph(ROOT)
    modules = [path for path in sorted((ROOT / "src").rglob("*.py")) if not path.name.startswith("__")]
    assert [path.name for path in modules if not graph.has_tests(str(path.relative_to(ROOT)))] == []


@pytest.mark.slow
def test_what_survives_is_shown_and_the_work_tree_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("os.nice", lambda increment: 0)
    listed = Equivalent("src/wukong/sizes/limits.py", "return number > 20", "return number > 21", "just so")
    monkeypatch.setattr(command, "read_equivalents", lambda: [listed])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}

    run = CliRunner().invoke(command.main, ["src/wukong/sizes"])
    assert run.exit_code == 1, run.output
    assert "6 of 6 mutants in src/wukong/sizes, seed 1" in run.output
    assert "noticed     src/wukong/sizes/limits.py:2  return: return number < 10 → return None" in run.output
    assert "by tests/sizes/test_limits.py::test_small)" in run.output
    assert "    -return number > 20\n    +return number >= 20\n" in run.output
    assert "equivalent  src/wukong/sizes/limits.py:6  constant: 20 → 21: just so" in run.output
    assert "1 noticed, 4 survived, 1 equivalent: 20.0 %" in run.output

    run = CliRunner().invoke(command.main, ["--count", "1", "--threshold", "0"])
    assert run.exit_code == 0, run.output
    assert "1 of 3 mutants in what differs from main, seed 1" in run.output
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.py")} == before


FUNCTIONS = """
LIMIT = 10
def is_small(number, limit=LIMIT):
    def inner():
        return number < limit
    return inner()
class Box:
    sides = 4
    @property
    def is_open(self):
        return not self.lid
async def wait():
    return 1
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("LIMIT = 10", ""),
        ("limit=LIMIT", ""),
        ("number < limit", "is_small"),
        ("return inner()", "is_small"),
        ("sides = 4", ""),
        ("property", ""),
        ("not self.lid", "Box.is_open"),
        ("        return not self.lid\n", "Box.is_open"),
        ("return 1", "wait"),
    ],
)
def test_a_mutant_is_in_the_outermost_function_that_holds_it_or_in_none(text: str, name: str) -> None:
    source = FUNCTIONS.encode()
    start = source.index(text.encode())
    assert find_function(source, start, start + len(text)) == name


def test_a_function_that_is_alive_gets_the_code_of_another_source(tmp_path: Path) -> None:
    file = tmp_path / "sizes.py"
    inside = "    def inner():\n        return n < 10\n    return inner\n"
    before = f"def is_small(n):\n    return n < 10\ndef outer(n):\n{inside}"
    names: dict[str, Any] = {}
    exec(compile(before, str(file), "exec"), names)
    inner = names["outer"](10)
    assert swap_function(file, "is_small", before.replace("<", "<=").encode()) == 1
    assert names["is_small"](10)
    assert not inner()
    assert swap_function(file, "outer", before.replace("<", "<=").encode()) == 2
    assert inner()
    assert names["outer"](10)()
    assert swap_function(file, "absent", before.encode()) == 0


def test_tests_that_enter_a_function_are_chosen_nearest_files_first_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = {
        Function("a.py", "f", 1): [TimedTest("tests/far.py::quick", 1.0), TimedTest("tests/near.py::long", 9.0)],
        Function("a.py", "f.<locals>.g", 2): [
            TimedTest("tests/near.py::quick", 2.0),
            TimedTest("tests/far.py::long", 70.0),
        ],
        Function("a.py", "fuller", 9): [TimedTest("tests/near.py::other", 0.1)],
        Function("b.py", "f", 1): [TimedTest("tests/near.py::other", 0.1)],
    }
    tests, seconds = choose_tests(FunctionMap(runs, {}), "a.py", "f", ["tests/near.py"])
    assert tests == ["tests/near.py::quick", "tests/near.py::long", "tests/far.py::quick"]
    assert seconds == 12.0


@pytest.mark.slow
def test_with_a_map_mutants_of_functions_are_tried_in_forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\n", "utf-8")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("os.nice", lambda increment: 0)
    monkeypatch.setattr(command, "read_equivalents", list)
    tried: set[tuple[int, str]] = set()

    class SeenTrial(command.Trial):
        def _try_with(self, mutant: Mutant, *more: Any) -> RunResult:
            tried.add((mutant.line, mutant.text))
            return super()._try_with(mutant, *more)

    monkeypatch.setattr(command, "Trial", SeenTrial)
    map_file = tmp_path / "map.json"
    run = CliRunner().invoke(command.main, ["src/wukong/sizes", "--map", str(map_file)])
    assert "1 noticed, 5 survived, 0 equivalent" in run.output, run.output
    assert "by tests/sizes/test_limits.py::test_small)" in run.output
    assert tried == {(2, "<="), (2, "11"), (6, "return None"), (6, ">="), (6, "21")}, "the other one is known already"
    tests = FunctionMap.read(map_file).list_tests("src/wukong/sizes/limits.py", "is_small")
    assert [test.test for test in tests] == ["tests/sizes/test_limits.py::test_small"]
    assert FunctionMap.read(map_file).lines == {"src/wukong/sizes/limits.py": {2}}


@pytest.mark.slow
def test_slow_tests_are_asked_where_quick_ones_notice_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("os.nice", lambda increment: 0)
    (tmp_path / "tests/conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--quick', action='store_true')\n\n\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    if config.getoption('--quick'):\n"
        "        items[:] = [item for item in items if not item.get_closest_marker('slow')]\n",
        "utf-8",
    )
    (tmp_path / "tests/sizes/test_large.py").write_text(
        "import pytest\nfrom wukong.sizes.limits import is_large\n\n\n"
        "@pytest.mark.slow\ndef test_large():\n    assert is_large(21)\n    assert not is_large(20)\n",
        "utf-8",
    )
    run = CliRunner().invoke(command.main, [])
    assert run.exit_code == 0, run.output
    assert "by tests/sizes/test_large.py::test_large)" in run.output
    assert "3 noticed, 0 survived, 0 equivalent" in run.output


@pytest.mark.slow
def test_tests_that_take_long_without_a_mutant_get_four_times_as_long_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("os.nice", lambda increment: 0)
    monkeypatch.setattr(command, "LIMIT_SECONDS", 0.01)
    run = CliRunner().invoke(command.main, ["--count", "1", "src/wukong/sizes/limits.py", "--seed", "3"])
    assert "1 of 6 mutants" in run.output
    assert "0 noticed, 1 survived, 0 equivalent" in run.output, run.output


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_are_no_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    (tmp_path / "tests/sizes/test_limits.py").write_text("import wukong.sizes.limits\nassert False\n", "utf-8")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("os.nice", lambda increment: 0)
    run = CliRunner().invoke(command.main, ["--count", "1"])
    assert run.exit_code == 1
    assert "fail without a mutant: tests/sizes/test_limits.py" in run.output


def test_every_fault_of_the_past_can_still_be_planted() -> None:
    faults = read_old_faults()
    assert len({fault.was for fault in faults}) == len(faults)
    for fault in faults:
        source = (ROOT / fault.file).read_bytes()
        assert compiles(fault.plant(source), source), fault.was
    with pytest.raises(ValueError, match="expected once, found 2 times: 'a'"):
        OldFault("nothing", "a.py", "a", "b").plant(b"a = a")


@pytest.mark.slow
def test_every_equivalent_is_still_there_and_has_a_reason() -> None:
    entries = read_equivalents()
    sources = {entry.file: (ROOT / entry.file).read_bytes() for entry in entries}
    changes = {
        file: {changed_texts(mutant, source) for mutant in find_mutants(file, source)}
        for file, source in sources.items()
    }
    for entry in entries:
        assert (entry.before, entry.after) in changes[entry.file], entry
        assert entry.reason
        assert find_reason([entry], entry.file, entry.before, entry.after) == entry.reason
        assert find_reason([entry], "other.py", entry.before, entry.after) == ""
