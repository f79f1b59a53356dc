"""Programs that tests need come from the PATH, or from Debian's packages where we may install them; else tests skip."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from testbed import debian_packages
from testbed.__main__ import main
from testbed.debian_packages import find_program
from testbed.errors import UnavailableError

APT_GET = """#!/bin/sh
echo "$*" >> "{folder}/apt.log"
case "$*" in *install*) printf '#!/bin/sh\\n' > "{folder}/browser"; chmod +x "{folder}/browser" ;; esac
exit {code}
"""


def put_program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    (folder / name).write_text(text, "utf-8")
    (folder / name).chmod(stat.S_IRWXU)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of the PATH but for what scripts need, and somebody who may install."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/bin"]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_what_is_on_the_path_is_taken_and_nothing_installed(folder: Path) -> None:
    put_program(folder, "browser-2")
    assert find_program("Browser", "browser", ["browser", "browser-2"], pytest.fail) == folder / "browser-2"


def test_what_is_missing_is_installed_once(folder: Path) -> None:
    put_program(folder, "apt-get", APT_GET.format(folder=folder, code=0))
    said: list[str] = []
    assert find_program("Browser", "browser", ["browser"], said.append) == folder / "browser"
    assert said == ["installing Debian's package browser"]
    words = [line.split()[2] for line in (folder / "apt.log").read_text("utf-8").splitlines()]
    assert words == ["update", "install"]


def test_what_cannot_be_installed_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(folder, "apt-get", APT_GET.format(folder=folder, code=100))
    with pytest.raises(UnavailableError, match=r"Browser could not be installed: .*100"):
        find_program("Browser", "browser", ["browser"], lambda line: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UnavailableError, match="apt-get install browser"):
        find_program("Browser", "browser", ["browser"], pytest.fail)


@pytest.mark.parametrize("command", ["chromium", "prometheus"])
def test_a_machine_without_it_is_a_failure_only_where_tests_must_not_skip(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian_packages, "_find", lambda names: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("CI", "")
    run = CliRunner().invoke(main, [command, "--optional"])
    assert (run.exit_code, "will be skipped" in run.output) == (0, True)
    monkeypatch.setenv("CI", "true")
    run = CliRunner().invoke(main, [command, "--optional"])
    assert isinstance(run.exception, UnavailableError)
