"""The component that moves pods away from nodes that are about to go."""

from wukong.app.components.spot.component import SPOT

__all__ = ["SPOT"]
