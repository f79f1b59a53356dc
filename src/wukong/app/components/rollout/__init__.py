"""The component rollout: Rollouts become ReplicaSets, version by version."""

from wukong.app.components.rollout.component import ROLLOUT

__all__ = ["ROLLOUT"]
