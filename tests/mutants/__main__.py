"""`make mutants`: do the tests notice small mistakes in the lines that a change touches?

Mutants are drawn by seed from the lines of src/ that differ from a base, or from the files named, at most one for each
line while there are others. Each is tried in a copy of the tree with the tests that are nearest to the file by imports:
the quick ones, then the slow ones, never those that need a control plane. Prints what survived, with its diff; ends
with 1 if fewer than the threshold were noticed.

With --map, those within functions are first tried in forks of one session, each with the quick tests that enter its
function: a large sample then takes minutes. The map says which tests do; it is made where the file is missing.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import click

from mutants.changed_lines import find_changed_lines
from mutants.covering_tests import ImportGraph
from mutants.equivalents import find_reason, read_equivalents
from mutants.fork_runs import build_tasks, try_in_forks
from mutants.function_map import FunctionMap, record_map
from mutants.mutations import Mutant, changed_texts, compiles, find_changes
from mutants.old_faults import read_old_faults
from mutants.tree_copy import QUICK, SLOW, RunResult, TreeCopy

ROOT = Path(__file__).parents[2]
TIMES_SLOWER = 4  # than without a mutant: then it does not end
NEAREST = 2  # files that are tried first: most mutants are noticed there, and collecting tests takes time, too
BROAD = (  # then these, if they can
    "tests/embedded/test_golden_documents.py",
    "tests/scenarios/test_golden_stories.py",
    "tests/cli/test_golden_outputs.py",
)
LIMIT_SECONDS = 120.0  # most tests of a file take a quarter of it; where not, they are timed without a mutant


@click.command(help=__doc__)
@click.argument("paths", nargs=-1)
@click.option("--base", default="main", show_default=True, help="What the change is compared with; unused with PATHS.")
@click.option("--count", default=60, show_default=True, help="How many mutants at most.")
@click.option("--seed", default=1, show_default=True, help="Which are drawn.")
@click.option("--threshold", default=95.0, show_default=True, help="Percent of those not equivalent to be noticed.")
@click.option("--files", "most_files", default=25, show_default=True, help="How many test files at most; 0: all.")
@click.option("--quick", "quick_only", is_flag=True, help="Leave out slow tests, which may notice more.")
@click.option("--map", "map_file", type=Path, help="Which tests enter which function, for large samples.")
@click.option("--faults", "old_faults", is_flag=True, help="Plant faults of the past instead, all of them.")
@click.option("--list", "only_list", is_flag=True, help="Show what was drawn and its tests; run nothing.")
def main(
    paths: tuple[str, ...],
    base: str,
    count: int,
    seed: int,
    threshold: float,
    most_files: int,
    quick_only: bool,
    map_file: Path | None,
    old_faults: bool,
    only_list: bool,
) -> None:
    os.nice(10)
    if old_faults:
        faults, threshold = read_old_faults(), 100.0
        sources = {fault.file: (ROOT / fault.file).read_bytes() for fault in faults}
        drawn = [fault.plant(sources[fault.file]) for fault in faults]
        click.echo(f"{len(drawn)} faults of the past")
    else:
        lines = find_lines(paths) if paths else dict(find_changed_lines(ROOT, base))
        sources = {path: (ROOT / path).read_bytes() for path in sorted(lines)}
        every = [mutant for path, source in sources.items() for mutant in find_changes(path, source, lines[path])]
        drawn = draw(every, count, seed, lambda mutant: compiles(mutant, sources[mutant.path]))
        where = f"in {', '.join(paths)}" if paths else f"in what differs from {base}"
        click.echo(f"{len(drawn)} of {len(every)} mutants {where}, seed {seed}")
    if not drawn:
        return
    graph = ImportGraph(ROOT)
    tests = {
        path: order_tests([test for _, test in graph.list_tests(path)])[: most_files or None]
        for path in dict.fromkeys(mutant.path for mutant in drawn)
    }
    if only_list:
        for mutant in drawn:
            click.echo(describe(mutant, sources[mutant.path]))
            click.echo("\n".join(f"    {test}" for test in tests[mutant.path]))
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        noticed = find_noticed_in_forks(map_file, drawn, sources, tests) if map_file is not None else {}
        trial = Trial(TreeCopy(ROOT, Path(folder)), [QUICK] if quick_only else [QUICK, SLOW], noticed)
        killed, survived, equivalent = try_all(trial, drawn, sources, tests)
        trial.check_without_mutants()
    percent = 100.0 * killed / (killed + survived) if killed + survived else 100.0
    counts = f"{killed} noticed, {survived} survived, {equivalent} equivalent"
    click.echo(f"{counts}: {percent:.1f} % of those that can be noticed; {threshold:g} % are asked for")
    sys.exit(1 if percent < threshold else 0)


def find_lines(paths: Iterable[str]) -> dict[str, set[int] | None]:
    """All lines of the files named, and of those below the folders named."""
    files: list[Path] = []
    for path in paths:
        place = ROOT / path
        if not place.exists():
            raise click.UsageError(f"{path}: there is no such file or folder.")
        files += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return {str(file.resolve().relative_to(ROOT)): None for file in files}


def order_tests(tests: list[str]) -> list[str]:
    """The nearest, then the broad ones, then the others by their distance."""
    broad = [test for test in tests[NEAREST:] if test in BROAD]
    return [*tests[:NEAREST], *broad, *(test for test in tests[NEAREST:] if test not in broad)]


def draw(
    mutants: list[Mutant], count: int, seed: int, is_usable: Callable[[Mutant], bool] = lambda mutant: True
) -> list[Mutant]:
    """As many usable ones in the order of the source; two of one line only if there are too few lines."""
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    first: dict[tuple[str, int], Mutant] = {}
    for mutant in shuffled:
        first.setdefault((mutant.path, mutant.line), mutant)
    chosen = set(first.values())
    ordered = [*first.values(), *(mutant for mutant in shuffled if mutant not in chosen)]
    drawn = islice(filter(is_usable, ordered), count)
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.start, mutant.end, mutant.text))


def find_noticed_in_forks(
    map_file: Path, mutants: list[Mutant], sources: dict[str, bytes], tests: dict[str, list[str]]
) -> dict[Mutant, RunResult]:
    """Those that a quick test notices in a fork, and which test."""
    if not map_file.exists():
        record_map(ROOT, map_file, Path(__file__).parents[1])
    equivalents = read_equivalents()
    others = [
        mutant
        for mutant in mutants
        if not find_reason(equivalents, mutant.path, *changed_texts(mutant, sources[mutant.path]))
    ]
    planned = [*build_tasks(others, sources, FunctionMap.read(map_file), tests)]
    results = try_in_forks(ROOT, [task for _, task in planned], Path(__file__).parents[1])
    return {
        mutant: RunResult(False, result.noticed_by, result.seconds)
        for (mutant, _), result in zip(planned, results, strict=True)
        if result.noticed_by
    }


def try_all(
    trial: Trial, mutants: list[Mutant], sources: dict[str, bytes], tests: dict[str, list[str]]
) -> tuple[int, int, int]:
    """How many were noticed, survived, and are listed as equivalent."""
    killed = survived = equivalent = 0
    equivalents = read_equivalents()
    for mutant in mutants:
        source = sources[mutant.path]
        if reason := find_reason(equivalents, mutant.path, *changed_texts(mutant, source)):
            equivalent += 1
            click.echo(f"equivalent  {describe(mutant, source)}: {reason}")
            continue
        run = trial.try_mutant(mutant, source, tests[mutant.path])
        killed += not run.has_passed
        survived += run.has_passed
        word = "SURVIVED" if run.has_passed else "noticed"
        noticed_by = f" by {run.noticed_by}" if run.noticed_by else ""
        click.echo(f"{word:<10}  {describe(mutant, source)}  ({run.seconds:.0f} s{noticed_by})")
        if run.has_passed:
            before, after = changed_texts(mutant, source)
            click.echo("\n".join([f"    -{line}" for line in before.splitlines()]))
            click.echo("\n".join([f"    +{line}" for line in after.splitlines()]))
    return killed, survived, equivalent


class Trial:
    """Tries mutants: with the quick tests of the nearest files, then of the others, then with the slow tests of all.

    The tests that notice a mutant must pass without one: they are run once more, all together, in the end.
    """

    def __init__(
        self,
        copy: TreeCopy,
        kinds: Sequence[Sequence[str]] = (QUICK, SLOW),
        noticed: Mapping[Mutant, RunResult] | None = None,
    ) -> None:
        """`noticed` are those that were tried already."""
        self._copy, self._kinds, self._noticed = copy, kinds, noticed or {}
        self._noticing: dict[str, str] = {}  # test → a file whose mutant it noticed
        self._limits: dict[tuple[str, ...], float] = {}  # by files, where their tests take long without a mutant

    def try_mutant(self, mutant: Mutant, source: bytes, tests: list[str]) -> RunResult:
        if (run := self._noticed.get(mutant)) is not None:
            if run.test.startswith("tests/"):
                self._noticing.setdefault(run.test, mutant.path)
            return run
        seconds = 0.0
        for files, which in ((tests[:NEAREST], QUICK), (tests[NEAREST:], QUICK), (tests, SLOW)):
            if files and which in self._kinds:
                run = self._try_with(mutant, source, files, which)
                seconds += run.seconds
                if not run.has_passed:
                    return run._replace(seconds=seconds)
        return RunResult(True, "", seconds)

    def check_without_mutants(self) -> None:
        tests = [test for test in self._noticing if test.startswith("tests/")]
        run = self._copy.run_tests(tests, which=()) if tests else RunResult(True, "", 0.0)
        if not run.has_passed:
            path = self._noticing.get(run.test, "what was drawn")
            raise click.ClickException(f"the tests of {path} fail without a mutant: {run.noticed_by}")

    def _try_with(self, mutant: Mutant, source: bytes, files: list[str], which: Sequence[str]) -> RunResult:
        run = self._run_with(mutant, source, files, which)
        if run.is_too_long and which is SLOW:
            return RunResult(True, "", run.seconds)  # whether it is the mutant that takes long is not known
        if run.is_too_long and tuple(files) not in self._limits:
            without = self._copy.run_tests(files, which=which)
            self._limits[tuple(files)] = max(LIMIT_SECONDS, TIMES_SLOWER * without.seconds)
            if self._limits[tuple(files)] > LIMIT_SECONDS:
                run = self._run_with(mutant, source, files, which)
        if not run.has_passed and not run.is_too_long:
            self._noticing.setdefault(run.test, mutant.path)
        return run

    def _run_with(self, mutant: Mutant, source: bytes, files: list[str], which: Sequence[str]) -> RunResult:
        self._copy.write(mutant.path, mutant.apply(source))
        try:
            return self._copy.run_tests(files, self._limits.get(tuple(files), LIMIT_SECONDS), which)
        finally:
            self._copy.write(mutant.path, source)


def describe(mutant: Mutant, source: bytes) -> str:
    old = source[mutant.start : mutant.end].decode()
    change = " → ".join(shorten(text) for text in (old, mutant.text))
    return f"{mutant.path}:{mutant.line}  {mutant.kind}: {change}"


def shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 50 else f"{words[:49]}…"


if __name__ == "__main__":
    main()
