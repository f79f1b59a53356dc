"""Which tests can notice a mutant: by what they import, nearest first. Reads syntax trees; imports and runs nothing.

A test that imports the module is at distance 1, one that imports an importer of it at 2, and so on. A name that a
package only hands on (`from wukong.state import State`) leads to the module that has it. A module's dotted name as a
text imports it, too: so the command line loads its verbs. Tests import the conftest.py of their folder and those above.

Tests of the folder of the same name, or of one above, count as two steps nearer, and by two more for each word that
their name and the module's path have in common. Of one distance, one of each folder in turn. Called by __main__.py.
"""

from __future__ import annotations

import ast
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path

NEEDS_CONTROL_PLANE = ("tests/live/", "tests/conformance/")


class ImportGraph:
    def __init__(self, root: Path) -> None:
        """`root` is the project's folder. The modules below src and tests are known by their dotted names."""
        self._trees: dict[str, ast.Module] = {}
        self._paths: dict[str, str] = {}
        for base in ("src", "tests"):
            for file in sorted((root / base).rglob("*.py")):
                parts = file.relative_to(root / base).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                self._trees[name] = ast.parse(file.read_bytes())
                self._paths[name] = str(file.relative_to(root))
        self._importers: dict[str, set[str]] = {}
        for name, tree in self._trees.items():
            for imported in (*self._find_imports(tree), *self._find_conftests(name)):
                self._importers.setdefault(imported, set()).add(name)

    def has_tests(self, path: str) -> bool:
        """Whether any reaches the module at `path`: as `list_tests` says, and without putting them in order."""
        return next(self._find_tests(path), None) is not None

    def _find_tests(self, path: str) -> Iterator[tuple[int, str]]:
        """Distance by imports and path of the tests that reach the module at `path`, layer by layer."""
        module = next(name for name, its_path in self._paths.items() if its_path == path)
        seen, layer, distance = {module}, [module], 0
        while layer:
            yield from ((distance, self._paths[name]) for name in layer if _is_test(self._paths[name]))
            importers = {importer for name in layer for importer in self._importers.get(name, ())}
            layer, distance = sorted(importers - seen), distance + 1
            seen.update(layer)

    def list_tests(self, path: str) -> list[tuple[int, str]]:
        """Distance by imports and path of the tests that reach the module at `path`, nearest first."""
        tests = self._find_tests(path)
        place = Path(path.replace("src/wukong", "tests", 1))
        words = _split_words(place)
        turns: Tally[tuple[int, str]] = Tally()
        ordered: list[tuple[int, int, int, str]] = []
        for distance, test in sorted(tests):
            folder = Path(test).parent
            is_near = folder in place.parents and folder.name != "tests"
            nearer = 2 + 2 * len(words & _split_words(Path(Path(test).name))) if is_near else 0
            ordered.append((distance - nearer, turns[distance, str(folder)], distance, test))
            turns[distance, str(folder)] += 1
        return [(distance, test) for _, _, distance, test in sorted(ordered)]

    def _find_conftests(self, module: str) -> Iterator[str]:
        """What pytest imports before a test of this name."""
        if _is_test(self._paths[module]):
            folders = module.split(".")[:-1]
            names = (".".join((*folders[:depth], "conftest")) for depth in range(len(folders) + 1))
            yield from (name for name in names if name in self._trees)

    def _find_imports(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self._trees)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (self._resolve(node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
                yield from (name for name in (node.value,) if name in self._trees)

    def _resolve(self, module: str, name: str) -> str:
        """The module that a name comes from: a submodule, or what a package has it from."""
        if f"{module}.{name}" in self._trees:
            return f"{module}.{name}"
        if self._paths.get(module, "").endswith("__init__.py"):
            for node in self._trees[module].body:
                if isinstance(node, ast.ImportFrom) and node.module and node.module != module:
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            return self._resolve(node.module, alias.name)
        return module


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.startswith("tests/") and name.startswith("test_") and not path.startswith(NEEDS_CONTROL_PLANE)


def _split_words(path: Path) -> set[str]:
    return {word for part in path.with_suffix("").parts for word in part.split("_")} - {"test", "tests"}
