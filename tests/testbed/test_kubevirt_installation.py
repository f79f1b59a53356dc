"""KubeVirt beside a control plane: what is told when it cannot start."""

import sys
from pathlib import Path

import pytest

from testbed.client import Client
from testbed.control_plane import Addition
from testbed.errors import TestbedError
from testbed.kubevirt.installation import Installation
from testbed.pytest_plugin import OwnControlPlane

OBJECTS = """#!/bin/sh
echo '{"crds": [], "webhooks": [], "rbac": [], "apiservices": []}'
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """One that prints no objects and is no component."""
    path = tmp_path / "kubevirt"
    path.write_text(OBJECTS)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("complaint", "has_advice"), [("Failed to create an inotify watcher", True), ("no disk", False)]
)
async def test_a_component_that_ends_says_why_and_what_to_do(
    complaint: str, has_advice: bool, program: Path, own_control_plane: OwnControlPlane
) -> None:
    plane = own_control_plane()
    installation = Installation(plane, program)
    plane.layout.logs.mkdir(parents=True)
    for name in installation.components:
        plane.additions[name] = Addition(
            [sys.executable, "-c", f"raise SystemExit({complaint!r})"], "http://127.0.0.1:1/"
        )
        plane.launch(name)
    with pytest.raises(TestbedError, match=rf"(?s)ended with 1 before it was ready.*{complaint}") as error:
        await installation.finish(Client("https://127.0.0.1:1", context=None))  # type: ignore[arg-type]  # not asked
    assert ("sysctl fs.inotify.max_user_instances" in str(error.value)) is has_advice


def test_what_the_program_prints_is_asked_for_once(program: Path, own_control_plane: OwnControlPlane) -> None:
    first = Installation(own_control_plane(), program)
    program.write_text("#!/bin/sh\nexit 1\n")
    assert Installation(own_control_plane(), program).objects == first.objects
