"""Ports handed out before they are used belong to one process at a time."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from testbed import ports
from testbed.errors import TestbedError

ASK = (
    "import sys; from testbed import ports; ports.PORTS = range(*map(int, sys.argv[1:3])); print(*ports.free_ports(1))"
)


def asked_elsewhere(start: int, stop: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK, str(start), str(stop)], capture_output=True, text=True, check=False
    )


def test_a_port_is_nobody_elses_until_its_process_ends() -> None:
    (port,) = ports.free_ports(1)
    assert "no 1 free ports" in asked_elsewhere(port, port + 1).stderr


def test_the_port_of_a_process_that_ended_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given = int(asked_elsewhere(19_000, 20_000).stdout)  # where nobody else asks
    monkeypatch.setattr(ports, "PORTS", range(given, given + 1))
    assert ports.free_ports(1) == [given]


def test_no_port_is_given_twice_by_one_process() -> None:
    given = ports.free_ports(200)
    assert len(set(given)) == 200


def test_where_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 1))
        with pytest.raises(TestbedError, match="no 1 free ports"):
            ports.free_ports(1)
