"""The component load: what is in use and what is free of each node, kept on its labels."""

from wukong.app.components.load.component import LOAD, LoadOptions

__all__ = ["LOAD", "LoadOptions"]
