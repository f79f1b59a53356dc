"""The component vm in a cluster: what it needs there. Used by `wukong manifests vm`."""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import WUKONGS
from wukong.app.install.controller import ControllerInstallation


def make_installation(**given: Any) -> ControllerInstallation:
    return ControllerInstallation(component="vm", kinds=(f"{WUKONGS.plural}.{WUKONGS.group}",), **given)
