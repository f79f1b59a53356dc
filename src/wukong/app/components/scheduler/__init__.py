"""The component scheduler: kube-scheduler's decisions, made by our own controller."""

from wukong.app.components.scheduler.component import SCHEDULER, SchedulerOptions

__all__ = ["SCHEDULER", "SchedulerOptions"]
