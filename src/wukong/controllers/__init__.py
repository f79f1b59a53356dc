"""Controllers: plain functions of (key, state, now) that say what should be done. Row 3; the runtime does it."""

from wukong.controllers.contract import Controller, Watch
from wukong.controllers.registry import CONTROLLERS

__all__ = ["CONTROLLERS", "Controller", "Watch"]
