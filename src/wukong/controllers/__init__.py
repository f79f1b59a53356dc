"""Controllers: plain functions of (key, state, now) that say what should be done. Row 3; the runtime does it."""

from wukong.controllers.registry import CONTROLLERS
from wukong.state.controller import Controller, Watch

__all__ = ["CONTROLLERS", "Controller", "Watch"]
