"""Keeps tests that share something costly on one worker of xdist. Loaded by tests/conftest.py, used by `make test`.

Such tests are marked `xdist_group("name")`. xdist's own `--dist loadgroup` knows groups by a suffix that workers give
to the ids of tests, and pytest 9 does not let them. Here one worker writes the groups into a file when it has
collected, and the scheduler reads it. All else is xdist's: a group or a single test at a time, in order of collection.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from testbed.pytest_plugin import RUN

WRITER = "gw0"


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What xdist calls a scope is a group, or a test that is in none."""

    @cached_property
    def groups(self) -> dict[str, str]:
        """Id of a test → its group. Asked for when every worker has collected."""
        file = groups_file(self.config)
        groups = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
        file.unlink()
        return groups

    def _split_scope(self, nodeid: str) -> str:
        return self.groups.get(nodeid, nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)  # before xdist says that this worker has collected
def pytest_collection_finish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    if worker == WRITER and session.config.getvalue("loadgroup"):
        marks = {item.nodeid: item.get_closest_marker("xdist_group") for item in session.items}
        groups = {nodeid: str(mark.args[0]) for nodeid, mark in marks.items() if mark}
        groups_file(session.config).write_bytes(msgspec.json.encode(groups))


def groups_file(config: pytest.Config) -> Path:
    return config.stash[RUN].folder.with_suffix(".groups")
