"""The component load: node usage kept on node labels."""

from wukong.app.components.load.component import LOAD, LoadOptions

__all__ = ["LOAD", "LoadOptions"]
