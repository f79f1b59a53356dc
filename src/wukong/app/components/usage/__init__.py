"""The component usage: how much of each node is in use, asked of a meter. Comes with those that decide by it."""

from wukong.app.components.usage.component import USAGE, UsageOptions

__all__ = ["USAGE", "UsageOptions"]
