"""All components there are, one line each. A new one is a package in this folder and a line here."""

from __future__ import annotations

from typing import Any

from wukong.app.component import Component
from wukong.app.components.admission import ADMISSION
from wukong.app.components.extender import EXTENDER
from wukong.app.components.hook import HOOK
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.ledger import LEDGER
from wukong.app.components.load import LOAD
from wukong.app.components.policy import POLICY
from wukong.app.components.rollout import ROLLOUT
from wukong.app.components.scheduler import SCHEDULER
from wukong.app.components.spot import SPOT
from wukong.app.components.usage import USAGE
from wukong.app.components.vm import VM
from wukong.app.components.wukongs import WUKONG_SETTINGS

COMPONENTS: dict[str, Component[Any]] = {
    component.name: component
    for component in (
        USAGE,
        WUKONG_SETTINGS,
        LOAD,
        EXTENDER,
        POLICY,
        ADMISSION,
        VM,
        ROLLOUT,
        HOOK,
        SPOT,
        LEDGER,
        SCHEDULER,
        KUBE_SCHEDULER,
    )
}
