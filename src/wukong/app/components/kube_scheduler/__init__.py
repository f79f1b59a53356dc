"""kube-scheduler in an embedded cluster: its decisions, made by our own controller."""

from wukong.app.components.kube_scheduler.component import KUBE_SCHEDULER

__all__ = ["KUBE_SCHEDULER"]
