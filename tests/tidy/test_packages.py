"""The packages people install: wheel and sdist hold the same, and run in an environment of their own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import wukong

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def build(source: Path, target: str, folder: Path) -> Path:
    """A package of the tree at `source`, by the locked build backend and without asking an index."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (package,) = folder.iterdir()
    return package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_runs_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are those of this environment, without the project itself: a path in a .pth brings no others."""
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    site = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--quiet", "--force-reinstall", str(wheel)], check=True, capture_output=True)
    for script in ("wukong", "kubectl-wukong"):
        shown = subprocess.run([place / "bin" / script, "--version"], capture_output=True, text=True, check=True)
        assert wukong.__version__ in shown.stdout
    examples = ROOT / "examples"
    files = ["-s", str(examples / "cluster.yaml"), "-f", str(examples / "web.yaml")]
    command = [str(place / "bin" / "wukong"), "capacity", *files]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "more fit" in asked.stdout


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    again = build(source, "wheel", tmp_path / "again")
    contents = [{file.filename: file.CRC for file in zipfile.ZipFile(package).infolist()} for package in (wheel, again)]
    assert contents[0] == contents[1]
