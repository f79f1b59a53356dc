"""The component wukongs: what all who place Wukongs must agree on. Comes with them."""

from wukong.app.components.wukongs.component import WUKONG_SETTINGS, WukongOptions

__all__ = ["WUKONG_SETTINGS", "WukongOptions"]
