"""The one list of controllers: name → what makes it. Read by app.assemble; each controller adds its line here."""

from __future__ import annotations

from collections.abc import Callable

from wukong.controllers.contract import Controller

CONTROLLERS: dict[str, Callable[..., Controller]] = {}
