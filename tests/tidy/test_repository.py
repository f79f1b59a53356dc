"""What holds for the repository as a whole: no traces of a machine, twin READMEs, a clean lock, small modules."""

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "wukong").rglob("*.py"))
LOCK = ROOT / "requirements.lock"

# Spelled apart, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile(rb"(?<![\w.-])/(?:" + rb"root|" + rb"work" + rb")/")
UNTRACKED_FOLDERS = {".git", ".venv", ".hypothesis", "__pycache__", "build", "dist"}

README_LINES = 150
MODULE_LINES = 500


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    found = [str(path.relative_to(ROOT)) for path in repository_files() if MACHINE_PATHS.search(path.read_bytes())]
    assert found == []


@pytest.mark.parametrize("folder", ["root", "work"])
def test_a_machine_path_is_found_where_it_starts_and_not_inside_another(folder: str) -> None:
    assert MACHINE_PATHS.search(f"cd /{folder}/main".encode())
    assert MACHINE_PATHS.search(f"path=/{folder}/.cache".encode())
    assert not MACHINE_PATHS.search(f"https://example.com/{folder}/page".encode())
    assert not MACHINE_PATHS.search(f"docs/{folder}/page and /{folder}ing/".encode())


def test_the_repository_has_files_to_look_at() -> None:
    assert {ROOT / "pyproject.toml", LOCK, Path(__file__).resolve()} <= set(repository_files())
    assert {ROOT / "pyproject.toml", LOCK, Path(__file__).resolve()} <= set(walked_files())


def test_the_readme_is_short_and_its_chinese_twin_has_the_same_shape() -> None:
    english, chinese = ROOT / "README.md", ROOT / "README.zh-CN.md"
    if not english.exists():  # neither is written yet
        assert not chinese.exists()
        return
    assert len(english.read_text("utf-8").splitlines()) < README_LINES
    assert shape(chinese.read_text("utf-8")) == shape(english.read_text("utf-8"))


def test_the_shape_of_a_readme_is_its_headings_and_code_blocks() -> None:
    text = "# Title\n\n```sh\n# a comment, no heading\nmake demo\n```\n\n## Next\n~~~\nx\n~~~\n"
    assert shape(text) == (["#", "##"], 2)


def test_the_lock_names_no_index_and_no_url() -> None:
    text = LOCK.read_text("utf-8")
    assert "://" not in text
    assert "file:" not in text
    assert [line for line in text.splitlines() if line.startswith("-")] == []


def test_the_lock_pins_with_hashes_whatever_pyproject_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += [need for extra in project["project"]["optional-dependencies"].values() for need in extra]
    pins = dict(locked(LOCK.read_text("utf-8")))
    assert sorted({canonical(need) for need in asked} - pins.keys()) == [], "run `make lock`"
    assert [name for name, hashes in pins.items() if hashes == 0] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_and_stays_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text)), "the first lines say what lives here, who calls it, what it never does"
    assert len(text.splitlines()) <= MODULE_LINES, "look for the second idea and give it a module"


def repository_files() -> list[Path]:
    """Tracked files and those about to be; all files where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    paths = [ROOT / name for name in listed.split("\0") if name] or list(walked_files())
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def walked_files() -> Iterator[Path]:
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in UNTRACKED_FOLDERS and not name.endswith("_cache")]
        yield from (Path(folder, name) for name in names)


def shape(markdown: str) -> tuple[list[str], int]:
    """The level of each heading in order, and the number of fenced code blocks."""
    headings, fences, is_code = [], 0, False
    for line in markdown.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
            fences += is_code
        elif not is_code and (heading := re.match(r"#{1,6}(?= )", line)):
            headings.append(heading[0])
    return headings, fences


def locked(text: str) -> Iterator[tuple[str, int]]:
    """Name and number of hashes of each pin; a package may be pinned once per Python version."""
    for entry in re.split(r"\n(?=\w)", text):
        if pin := re.match(r"([\w.-]+)==", entry):
            yield canonical(pin[1]), entry.count("--hash=sha256:")


def canonical(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()
