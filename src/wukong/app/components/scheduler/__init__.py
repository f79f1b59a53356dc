"""The component scheduler: binds the pods that name it, by engine, policies, rules and real usage."""

from wukong.app.components.scheduler.component import SCHEDULER
from wukong.app.components.scheduler.options import SchedulerOptions

__all__ = ["SCHEDULER", "SchedulerOptions"]
