"""The component rollout in a cluster: what it needs there. Used by `wukong manifests rollout`."""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import ROLLOUTS
from wukong.app.install.controller import ControllerInstallation


def make_installation(**given: Any) -> ControllerInstallation:
    return ControllerInstallation(component="rollout", kinds=(f"{ROLLOUTS.plural}.{ROLLOUTS.group}",), **given)
