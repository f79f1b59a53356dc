"""The one list of controllers: name → what makes it. Read by app.live; each controller adds its line here."""

from __future__ import annotations

from collections.abc import Callable

from wukong.controllers.load.controller import Load
from wukong.controllers.policy.controller import Policy
from wukong.state.controller import Controller

CONTROLLERS: dict[str, Callable[..., Controller]] = {"load": Load, "policy": Policy}
