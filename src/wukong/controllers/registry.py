"""The one list of controllers: name → what makes it. Read by app.live; each controller adds its line here."""

from __future__ import annotations

from collections.abc import Callable

from wukong.controllers.contract import Controller
from wukong.controllers.load import Load
from wukong.controllers.policy import Policy

CONTROLLERS: dict[str, Callable[..., Controller]] = {"load": Load, "policy": Policy}
