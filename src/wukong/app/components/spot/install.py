"""The component spot in a cluster: what it needs there. Used by `wukong manifests spot`."""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import MOVES
from wukong.app.install.controller import ControllerInstallation


def make_installation(**given: Any) -> ControllerInstallation:
    return ControllerInstallation(component="spot", kinds=(f"{MOVES.plural}.{MOVES.group}",), **given)
