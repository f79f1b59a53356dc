"""Programs that come as packages of Debian: found on the PATH, or installed where we may. Called by prometheus.py and
chromium.py; never anything but `apt-get install` of the package that is named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.build import Say
from testbed.errors import UnavailableError


def find_program(title: str, package: str, names: Sequence[str], say: Say) -> Path:
    """The first of these programs that is on the PATH. If none is, the package is installed first, as root."""
    program = _find(names)
    if program is None and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing Debian's package {package}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        try:
            for words in (["update"], ["install", "--yes", "--no-install-recommends", package]):
                command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *words]
                subprocess.run(command, env=environment, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnavailableError(f"{title} could not be installed: {error}") from None
        program = _find(names)
    if program is None:
        raise UnavailableError(f"there is no {title} on the PATH: install it (Debian: apt-get install {package})")
    return program


def _find(names: Sequence[str]) -> Path | None:
    return next((Path(program) for name in names if (program := shutil.which(name))), None)
