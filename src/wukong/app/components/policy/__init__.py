"""The component policy: whether a PlacementPolicy is understood, on its status."""

from wukong.app.components.policy.component import POLICY

__all__ = ["POLICY"]
