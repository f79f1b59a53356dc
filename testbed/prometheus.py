"""A real Prometheus for one test: Debian's package, scraping what it is told to, every second, on loopback.

`python -m testbed prometheus` installs it where that is possible; the fixture `prometheus` starts it.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.build import Say
from testbed.debian_packages import find_program
from testbed.errors import TestbedError
from testbed.ports import free_ports
from testbed.processes import Identity, end, spawn

PACKAGE = "prometheus"
READY_SECONDS = 30.0
CONFIGURATION = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: nodes
  static_configs: [{{targets: [{targets}]}}]
"""


def find(say: Say) -> Path:
    """The program; installed first, as Debian's package, where we may."""
    return find_program("Prometheus", PACKAGE, [PACKAGE], say)


@contextmanager
def running(program: Path, folder: Path, targets: list[str]) -> Iterator[str]:
    """Its address, once it answers; ended afterwards, and with us."""
    (port,) = free_ports(1)
    configuration = folder / "prometheus.yaml"
    configuration.write_text(CONFIGURATION.format(targets=", ".join(f'"{target}"' for target in targets)))
    process = spawn(
        [
            str(program),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        folder / "prometheus.log",
        cwd=folder,
    )
    identity = Identity.of(process.pid)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_ready(address, folder / "prometheus.log", lambda: process.poll() is None)
        yield address
    finally:
        if identity:
            end([identity])
        process.wait()


def _wait_until_ready(address: str, log: Path, is_alive: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and is_alive():
        try:
            with urllib.request.urlopen(f"{address}/-/ready", timeout=1) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise TestbedError(f"Prometheus did not become ready; its last words: {log.read_text()[-500:]}")
