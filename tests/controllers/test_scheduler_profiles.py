"""A scheduler of several names decides each pod by the profile of the name that the pod has."""

from __future__ import annotations

import msgspec
import pytest

from builders import a_node, a_pod
from scheduler_world import World
from wukong.api.core import Pod
from wukong.api.profile import FitArguments, default_profile
from wukong.api.scheduler_config import read_scheduler_profiles
from wukong.api.versions import DEFAULT, VERSIONS
from wukong.controllers.scheduler.controller import Scheduler
from wukong.errors import InputError

replace = msgspec.structs.replace
PACKING = replace(default_profile(), fit=FitArguments(strategy="MostAllocated"), scores=(("NodeResourcesFit", 1),))
TWO = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
- schedulerName: usual
"""


def named(pod: Pod, scheduler: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduler_name=scheduler))


def test_each_name_goes_by_its_own_profile_and_others_by_the_usual_one() -> None:
    world = World(Scheduler(["packing", "usual"], profiles={"packing": PACKING}))
    world.put(a_node("empty", cpu="4"), a_node("half", cpu="4"), a_pod("there", cpu="2", node="half"))
    world.put(named(a_pod("a", cpu="1"), "packing"), named(a_pod("b", cpu="1"), "usual"))
    assert world.settle().binds() == [("a", "half"), ("b", "empty")]


def test_every_profile_of_a_configuration_is_read() -> None:
    profiles = read_scheduler_profiles(TWO, VERSIONS[DEFAULT])
    strategies = {name: profile.fit.strategy for name, profile in profiles.items()}
    assert strategies == {"packing": "MostAllocated", "usual": "LeastAllocated"}


def test_two_profiles_of_one_name_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        read_scheduler_profiles(TWO.replace(b"usual", b"packing"), VERSIONS[DEFAULT])
    assert "$.profiles[1].schedulerName: expected another name than those before it, got 'packing'." in str(
        caught.value
    )
