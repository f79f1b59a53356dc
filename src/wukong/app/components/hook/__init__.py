"""The hook by which other programs say that a node is about to go. It comes with the component spot, and is off."""

from wukong.app.components.hook.component import HOOK

__all__ = ["HOOK"]
