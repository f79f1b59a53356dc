"""The import rows of docs/architecture.md, kept by reading every module's syntax tree: nothing is imported or run.

An import counts wherever it stands: at the top, inside a function, under TYPE_CHECKING, or as
`import_module("wukong.…")` with the name written out.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "wukong"

ROWS: dict[int, tuple[str, ...]] = {
    8: ("cli",),
    7: ("forecast",),
    6: ("app",),
    5: ("serve", "embedded"),
    4: ("runtime", "cluster"),
    3: ("controllers", "replies"),
    2: ("state", "placement"),
    1: ("engine", "rules", "admission"),
    0: ("api", "semantics", "ports", "actions", "errors"),
}
ROW_OF = {part: row for row, parts in ROWS.items() for part in parts}
WITHIN_ROW_ZERO = ("errors", "api", "semantics", "ports", "actions")  # each may import those before it
STRANGERS = [  # never import each other, whatever their rows
    ("engine", "rules"),
    ("rules", "semantics"),
    ("rules", "admission"),
    ("engine", "admission"),
    ("embedded", "controllers"),
]
ORACLE = "rules"
CHECKERS = "wukong.embedded.checkers"  # in the product only these may ask the oracle

LAST_PURE_ROW = 3
# Rows 0-3 are given the time, the randomness and the cluster; these are the ways to take them instead.
IMPURE = {
    "aiohttp", "asyncio", "concurrent", "glob", "http", "multiprocessing", "os", "pathlib", "random", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time",
    "urllib.request", "numpy.random", "uuid.uuid1", "uuid.uuid4", "io.open", "io.FileIO",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
}  # fmt: skip


class Module(NamedTuple):
    """One source file. `name` is dotted; a package's `__init__.py` has the package's name."""

    name: str
    tree: ast.Module
    is_package: bool = False

    @property
    def part(self) -> str:
        """The folder or module directly below `wukong`; for the package itself, `__init__`."""
        return part_of(self.name)


class Use(NamedTuple):
    """A dotted name that a module imports or refers to, and the line where it does."""

    name: str
    line: int


# The tests: one per rule ------------------------------------------------------------------------------------------


def test_every_top_level_module_has_a_row() -> None:
    assert unknown_parts(modules()) == []


def test_a_module_imports_only_rows_below_it_or_its_own_folder() -> None:
    assert [finding for module in modules() for finding in row_findings(module)] == []


@pytest.mark.parametrize(("one", "other"), STRANGERS)
def test_strangers_never_import_each_other(one: str, other: str) -> None:
    assert [finding for module in modules() for finding in stranger_findings(module, one, other)] == []


def test_only_the_checkers_ask_the_oracle() -> None:
    assert [finding for module in modules() for finding in oracle_findings(module)] == []


def test_rows_zero_to_three_take_no_time_no_randomness_no_sockets_no_files() -> None:
    assert [finding for module in modules() for finding in purity_findings(module)] == []


def test_the_checks_read_the_real_package() -> None:
    """Against a moved folder: the rules above hold for no modules at all, too."""
    assert {"wukong", "wukong.__main__", "wukong.cli.main", "wukong.errors"} <= {module.name for module in modules()}


# The tests of the checker: sources that break one rule each --------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import wukong.state",
        "import wukong.state.mirror as m",
        "from wukong.state import mirror",
        "from wukong import state",
        "from wukong.rules import taints",
        "from .. import state",
        "from ..state import mirror",
        "def f():\n    from wukong.state import mirror",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wukong.state import mirror",
        "try:\n    import wukong.cli\nexcept ImportError:\n    pass",
        "import importlib\nimportlib.import_module('wukong.state')",
        "__import__('wukong.state')",
        "from wukong import nonsense",
        "from wukong import *",
    ],
)
def test_an_import_upwards_or_sideways_is_found(source: str) -> None:
    assert len(row_findings(written("wukong.engine.place", source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import wukong.api.core",
        "from wukong.errors import InputError",
        "from wukong.engine.snapshot import Snapshot",
        "from .snapshot import Snapshot",
        "from . import snapshot",
        "from wukong import __version__",
        "import numpy as np",
        "import wukongish.cli",
    ],
)
def test_an_import_downwards_or_of_the_own_folder_is_allowed(source: str) -> None:
    assert row_findings(written("wukong.engine.place", source)) == []


def test_modules_of_one_row_do_not_import_each_other() -> None:
    assert row_findings(written("wukong.serve.extender.server", "from wukong.embedded import store")) == [
        "wukong.serve.extender.server:1 imports wukong.embedded: 'serve' is row 5 and may import only rows below it or "
        "its own folder; 'embedded' is row 5"
    ]


def test_row_zero_has_an_order_of_its_own() -> None:
    assert row_findings(written("wukong.api.quantity", "from wukong.errors import InputError")) == []
    assert row_findings(written("wukong.actions", "from wukong.ports import Document")) == []
    assert len(row_findings(written("wukong.errors", "from wukong.api import Objects"))) == 1
    assert len(row_findings(written("wukong.ports", "from wukong.actions import Bind"))) == 1


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    assert row_findings(written("wukong.engine", "from .snapshot import Snapshot", is_package=True)) == []
    assert len(row_findings(written("wukong.engine", "from ..state import mirror", is_package=True))) == 1


def test_the_package_itself_imports_no_row_and_main_may_import_all() -> None:
    assert len(row_findings(written("wukong", "from wukong.errors import WukongError", is_package=True))) == 1
    assert row_findings(written("wukong.__main__", "from wukong.cli import main")) == []


@pytest.mark.parametrize(("one", "other"), [*STRANGERS, *(pair[::-1] for pair in STRANGERS)])
def test_strangers_importing_each_other_are_found(one: str, other: str) -> None:
    module = written(f"wukong.{one}.a", f"def f():\n    from wukong.{other} import b")
    assert len(stranger_findings(module, one, other)) == 1
    assert len(stranger_findings(module, other, one)) == 1


def test_strangers_are_found_where_the_rows_alone_would_allow_them() -> None:
    module = written("wukong.embedded.actors", "from wukong.controllers import scheduler")
    assert row_findings(module) == []
    assert len(stranger_findings(module, "embedded", "controllers")) == 1


def test_what_decides_and_asks_the_oracle_is_found() -> None:
    source = "def f():\n    from wukong.rules.selectors import selects"
    assert oracle_findings(written("wukong.state.indexes", source)) == [
        "wukong.state.indexes:2 imports wukong.rules.selectors: only wukong.embedded.checkers may"
    ]
    assert len(oracle_findings(written("wukong.embedded.checkersish", "from wukong import rules"))) == 1
    assert oracle_findings(written("wukong.embedded.checkers.budgets", source)) == []
    assert oracle_findings(written("wukong.rules.taints", source)) == []
    assert oracle_findings(written("wukong.app.rules", "from wukong.placement import rules")) == []


def test_a_top_level_module_without_a_row_is_found() -> None:
    assert unknown_parts([written("wukong.utils", ""), written("wukong.helpers.text", "")]) == ["helpers", "utils"]
    assert unknown_parts([written("wukong", "", is_package=True), written("wukong.__main__", "")]) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from os import environ",
        "from time import monotonic as clock",
        "import asyncio, json",
        "import urllib.request",
        "from http.client import HTTPConnection",
        "def f():\n    import random",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pathlib import Path",
        "import importlib\nimportlib.import_module('socket')",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nrng = np.random.default_rng(1)",
        "import datetime\nnow = datetime.datetime.now(datetime.UTC)",
        "import datetime as dt\ntoday = dt.date.today()",
        "from datetime import datetime\nnow = datetime.utcnow()",
        "from datetime import datetime as moment\ndefault = moment.now",
        "from datetime import date\ntoday = date.today()",
        "import uuid\nuid = uuid.uuid4()",
        "from uuid import uuid1",
        "text = open('policy.yaml').read()",
        "import io\ntext = io.open('policy.yaml').read()",
    ],
)
def test_an_impure_source_is_found_in_rows_zero_to_three(source: str) -> None:
    for name in ("wukong.errors", "wukong.rules.taints", "wukong.state.mirror", "wukong.controllers.spot"):
        assert len(purity_findings(written(name, source))) == 1, name


@pytest.mark.parametrize(
    "source",
    [
        "def f(clock):\n    return clock.now()",
        "from datetime import UTC, datetime\nstart = datetime(2026, 1, 1, tzinfo=UTC)",
        "import uuid\nuid = uuid.uuid5(uuid.NAMESPACE_DNS, 'web-7')",
        "def f(random):\n    return random.time",
        "door.open()",
        "from wukong.rules import time",
    ],
)
def test_what_only_resembles_an_impure_source_is_allowed(source: str) -> None:
    assert purity_findings(written("wukong.rules.budgets", source)) == []


def test_rows_above_three_may_touch_the_world() -> None:
    assert purity_findings(written("wukong.runtime.loop", "import asyncio, time\nopen('x')")) == []


# The checker ------------------------------------------------------------------------------------------------------


@cache
def modules() -> list[Module]:
    return [read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def read(path: Path) -> Module:
    names = ["wukong", *path.relative_to(PACKAGE).with_suffix("").parts]
    is_package = names[-1] == "__init__"
    return written(".".join(names[:-1] if is_package else names), path.read_text("utf-8"), is_package=is_package)


def written(name: str, source: str, *, is_package: bool = False) -> Module:
    return Module(name, ast.parse(source, name), is_package)


def part_of(name: str) -> str:
    return name.split(".")[1] if "." in name else "__init__"


def row_of(part: str) -> int | None:
    """The package itself is below every row, for it is imported with each; `__main__` is above."""
    return {"__init__": -1, "__main__": max(ROWS) + 1}.get(part, ROW_OF.get(part))


def unknown_parts(among: list[Module]) -> list[str]:
    return sorted({module.part for module in among if row_of(module.part) is None})


def row_findings(module: Module) -> list[str]:
    own = row_of(module.part)
    findings = []
    for use in own_package_imports(module):
        part = part_of(use.name)
        is_dunder = part.startswith("__") and part != "__main__"  # `from wukong import __version__`
        if own is None or part == module.part or is_dunder:
            continue
        row = row_of(part)
        if part in WITHIN_ROW_ZERO and module.part in WITHIN_ROW_ZERO[WITHIN_ROW_ZERO.index(part) + 1 :]:
            continue
        if row is None or row >= own:
            findings.append(
                f"{module.name}:{use.line} imports {use.name}: {module.part!r} is row {own} and may import only rows "
                f"below it or its own folder; {part!r} is {'in no row' if row is None else f'row {row}'}"
            )
    return findings


def stranger_findings(module: Module, one: str, other: str) -> list[str]:
    stranger = {one: other, other: one}.get(module.part)
    return [
        f"{module.name}:{use.line} imports {use.name}: {one!r} and {other!r} never import each other"
        for use in own_package_imports(module)
        if part_of(use.name) == stranger
    ]


def oracle_findings(module: Module) -> list[str]:
    if module.part == ORACLE or module.name == CHECKERS or module.name.startswith(f"{CHECKERS}."):
        return []
    return [
        f"{module.name}:{use.line} imports {use.name}: only {CHECKERS} may"
        for use in own_package_imports(module)
        if part_of(use.name) == ORACLE
    ]


def purity_findings(module: Module) -> list[str]:
    row = row_of(module.part)
    if row is None or not 0 <= row <= LAST_PURE_ROW:
        return []
    lines = {use.line: use.name for use in [*references(module), *imports(module)] if is_impure(use.name)}
    lines |= {use.line: use.name for use in open_calls(module)}
    return [
        f"{module.name}:{line} uses {name}: rows 0-{LAST_PURE_ROW} are given time, randomness and files"
        for line, name in sorted(lines.items())
    ]


def is_impure(name: str) -> bool:
    return any(name == impure or name.startswith(f"{impure}.") for impure in IMPURE)


def own_package_imports(module: Module) -> list[Use]:
    """What is imported from `wukong`, one per line and part: `from wukong.api import core, apps` is one."""
    found = {(use.line, part_of(use.name)): use for use in reversed(imports(module)) if is_own(use.name)}
    return sorted(found.values(), key=lambda use: (use.line, use.name))


def is_own(name: str) -> bool:
    return name.startswith("wukong.")


@cache
def imports(module: Module) -> tuple[Use, ...]:
    """Every import of the module. `from a import b` gives `a.b` after `a`: b may be a module, too."""
    return tuple(_find_imports(module))


def _find_imports(module: Module) -> Iterator[Use]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (Use(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = absolute_source(module, node)
            yield Use(source, node.lineno)
            yield from (Use(f"{source}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from (Use(text, node.lineno) for text in map(text_of, node.args[:1]) if text)


def absolute_source(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    steps = node.level - 1 if module.is_package else node.level
    parts = module.name.split(".")
    return ".".join([*parts[: len(parts) - steps], *([node.module] if node.module else [])])


def references(module: Module) -> Iterator[Use]:
    """Every dotted name that starts at something imported, spelled out in full: `np.random.x` is `numpy.random.x`."""
    known = imported_names(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            if first in known:
                yield Use(f"{known[first]}.{rest}", node.lineno)


def imported_names(module: Module) -> dict[str, str]:
    known = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                known[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            source = absolute_source(module, node)
            known |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
    return known


def open_calls(module: Module) -> Iterator[Use]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield Use("open", node.lineno)


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of attributes that starts at a name, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
