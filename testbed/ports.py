"""Ports for servers that are told theirs beforehand: each belongs to one process until that process ends.

Used by whoever starts a component, and by tests. A port that merely looked free may be another's a second later, so
each is also a locked file: every test bed of this user respects it, and the kernel lets go when its holder dies.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

from testbed.errors import TestbedError

# Below the range from which the kernel takes ports for outgoing connections: while a component is down nobody's
# connection can sit on its port.
PORTS = range(20000, 32000)

_held: list[IO[str]] = []  # open until this process ends


def free_ports(count: int) -> list[int]:
    """Nobody listens there, and no other process that asks gets them while this one lives."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        if _reserve(port):
            found.append(port)
    if len(found) < count:
        raise TestbedError(f"no {count} free ports on 127.0.0.1 between {PORTS.start} and {PORTS.stop}")
    return found


def _reserve(port: int) -> bool:
    folder = Path(tempfile.gettempdir(), f"wukong-ports-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    file = (folder / str(port)).open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        file.close()
        return False
    _held.append(file)
    atexit.register(file.close)  # else the interpreter complains about it in its last moment
    return True
