"""Controllers: plain functions of (key, state, now) that say what should be done. Row 3; the runtime does it."""

from wukong.state.controller import Controller, Watch

__all__ = ["Controller", "Watch"]
