"""The one list of controllers: name → what makes it. Read by app.live; each controller adds its line here."""

from __future__ import annotations

from collections.abc import Callable

from wukong.controllers.load import Load
from wukong.controllers.policy import Policy
from wukong.state.contract import Controller

CONTROLLERS: dict[str, Callable[..., Controller]] = {"load": Load, "policy": Policy}
