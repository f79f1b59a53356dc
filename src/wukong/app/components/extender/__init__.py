"""The component extender: kube-scheduler's questions answered by placement policies."""

from wukong.app.components.extender.component import EXTENDER
from wukong.app.components.extender.options import ExtenderOptions

__all__ = ["EXTENDER", "ExtenderOptions"]
