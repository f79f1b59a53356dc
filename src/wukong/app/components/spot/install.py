"""The component spot in a cluster: what it needs there. Used by `wukong manifests spot`."""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import MOVES, NODE_NOTICES
from wukong.app.install.controller import ControllerInstallation


def make_installation(**given: Any) -> ControllerInstallation:
    kinds = tuple(f"{kind.plural}.{kind.group}" for kind in (MOVES, NODE_NOTICES))
    return ControllerInstallation(component="spot", kinds=kinds, **given)
