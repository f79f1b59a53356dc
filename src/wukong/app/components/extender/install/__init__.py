"""The extender in a cluster, as plain documents: pure functions of an ExtenderInstallation.

settings.py      what is asked for, and the names everything shares
extender.py      the extender
scheduler.py     the scheduler's configuration, and a second scheduler where the first takes none
"""

from wukong.app.components.extender.install import extender, scheduler
from wukong.app.components.extender.install.documents import build_manifests
from wukong.app.components.extender.install.settings import ExtenderInstallation, SecondScheduler, check_installation

__all__ = [
    "ExtenderInstallation",
    "SecondScheduler",
    "build_manifests",
    "check_installation",
    "extender",
    "scheduler",
]
