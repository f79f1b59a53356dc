"""Room for the file watches of many control planes. Called before one starts.

API server, controller manager and KubeVirt watch their certificates: some 15 inotify instances for each control plane.
Linux gives a user 128 unless told otherwise, so the ninth would fail with "too many open files".
"""

from __future__ import annotations

import contextlib
from pathlib import Path

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
ENOUGH = 1024


def make_room(limit: Path = LIMIT) -> None:
    """Raise the limit until the machine starts anew, where it is low and we may. Never lowers it."""
    with contextlib.suppress(OSError, ValueError):
        if int(limit.read_text()) < ENOUGH:
            limit.write_text(f"{ENOUGH}\n")
