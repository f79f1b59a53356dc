"""An instance whose pods a virt-controller has not seen yet is not taken for one that has none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from wukong.actions import Outcome
from wukong.api.resources import Key
from wukong.embedded.actors.kubevirt.expectations import EXPECTATION_SECONDS
from wukong.embedded.actors.kubevirt.instances import Instances
from wukong.embedded.world.objects import VirtualMachineInstance
from wukong.state import State

NOW = 1_800_000_000.0
KEY = Key("default", "web-1")


def an_instance(uid: str, version: str, active_pods: dict[str, str]) -> VirtualMachineInstance:
    document: dict[str, Any] = {
        "metadata": {"name": "web-1", "namespace": "default", "uid": uid, "resourceVersion": version},
        "spec": {"domain": {}},
        "status": {"phase": "Scheduling", "activePods": active_pods},
    }
    return msgspec.convert({**document, "document": document}, VirtualMachineInstance)


def observe(controller: Instances, state: State, event: Any, instance: VirtualMachineInstance) -> None:
    """As a process does: the mirror takes it in, then the watch is asked whose key it is."""
    (watch,) = [watch for watch in controller.watches if watch.resource.kind == "VirtualMachineInstance"]
    for change in state.apply(event, instance, "VirtualMachineInstance.kubevirt.io"):
        list(watch.keys(change, state))


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
def test_an_instance_listed_again_may_name_pods_that_were_not(event: str) -> None:
    """The watch of instances broke and they were listed again: one made anew meanwhile names its pod at once."""
    controller, state = Instances(), State()
    observe(controller, state, "ADDED", an_instance("former", "1", {}))
    controller.reconcile(Key("default", "another"), state, NOW)
    if event == "ADDED":
        observe(controller, state, "DELETED", an_instance("former", "1", {}))
    observe(controller, state, event, an_instance("uid", "5", {"pod": "a-1"}))
    assert controller.reconcile(KEY, state, NOW) == Outcome(requeue_after=EXPECTATION_SECONDS)


def test_pods_named_when_everything_is_listed_first_have_been_seen() -> None:
    controller, state = Instances(), State()
    observe(controller, state, "ADDED", an_instance("uid", "5", {"pod": "a-1"}))
    assert controller.reconcile(KEY, state, NOW).requeue_after is None
