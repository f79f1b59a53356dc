"""What is installed in a cluster, as plain documents: pure functions of Settings, used by `wukong manifests`.

settings.py      what is asked for, and the names everything shares
certificates.py  the keys of mutual TLS
rbac.py          accounts and rights, from the rules of app.components
workload.py      how pods on the way of every pod must be run
extender.py      the extender
scheduler.py     the scheduler's configuration, and a second scheduler where the first takes none
"""

from wukong.app.install import extender, scheduler
from wukong.app.install.certificates import Certificates, issue
from wukong.app.install.settings import SecondScheduler, Settings, checked

__all__ = ["Certificates", "SecondScheduler", "Settings", "checked", "extender", "issue", "scheduler"]
