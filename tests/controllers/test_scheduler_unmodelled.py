"""What our scheduler does not model: such pods are told so and left alone, until what they wait for is there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node, a_pod
from scheduler_world import OURS, World
from wukong.api.core import (
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    VolumeNodeAffinity,
)
from wukong.api.meta import ObjectMeta
from wukong.controllers.scheduler.controller import Result, Scheduler

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}


def careful(results: list[Result] | None = None) -> World:
    record = (lambda result: None) if results is None else results.append
    return World(Scheduler([OURS], refuses_unmodelled=True, record_result=record))


def with_spec(**fields: Any) -> Pod:
    pod = a_pod("web")
    spec = msgspec.to_builtins(pod.spec) | fields
    return msgspec.structs.replace(pod, spec=msgspec.convert(spec, type(pod.spec)))


def a_claim(name: str = "data", volume: str = "", access_modes: tuple[str, ...] = ()) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(volume_name=volume, access_modes=[*access_modes])
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def a_volume(labels: dict[str, str] | None = None, *, has_affinity: bool = False) -> PersistentVolume:
    affinity = VolumeNodeAffinity(required=NodeSelector()) if has_affinity else None
    meta = ObjectMeta(name="disk", labels=labels or {})
    return PersistentVolume(metadata=meta, spec=PersistentVolumeSpec(node_affinity=affinity))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "it has resource claims, and devices are not allocated here"),
        ({"volumes": [{"name": "disk", "rbd": {}}]}, "volume disk is a rbd, and who else has that disk"),
        ({"volumes": [CLAIM]}, "claim data is not bound to a volume yet"),
        ({"volumes": [EPHEMERAL]}, "claim web-scratch is not bound to a volume yet"),
    ],
)
def test_a_pod_that_asks_for_it_is_told_so_and_nothing_else_is_done(fields: dict[str, Any], said: str) -> None:
    results: list[Result] = []
    world = careful(results)
    world.put(a_node("n1"), with_spec(**fields), a_pod("other"))
    assert world.settle().binds() == [("other", "n1")]
    (note,) = [note for note in world.notes() if note.reason == "NotModelled"]
    assert said in note.text
    assert note.text.startswith(f"{OURS} leaves this pod alone: ")
    assert (note.key.name, note.is_warning) == ("web", True)
    assert world.message("web") == ""
    assert sorted(results) == ["not-modelled", "scheduled"]


@pytest.mark.parametrize(
    ("claim", "volume", "said"),
    [
        (a_claim(volume="disk"), None, "volume disk of claim data is not there"),
        (a_claim(volume="disk", access_modes=("ReadWriteOncePod",)), a_volume(), "claim data is ReadWriteOncePod"),
        (a_claim(volume="disk"), a_volume({"topology.kubernetes.io/zone": "a"}), "tied to a zone by its labels alone"),
    ],
)
def test_a_claim_that_is_bound_may_still_be_one_that_is_not_modelled(
    claim: PersistentVolumeClaim, volume: PersistentVolume | None, said: str
) -> None:
    world = careful()
    world.put(a_node("n1"), claim, *([volume] if volume is not None else []), with_spec(volumes=[CLAIM]))
    assert world.settle().binds() == []
    assert said in world.notes()[0].text


@pytest.mark.parametrize("volume", [a_volume(), a_volume({"topology.kubernetes.io/zone": "a"}, has_affinity=True)])
def test_a_pod_whose_claim_is_bound_is_scheduled_and_one_that_waits_for_that_is_tried_again(
    volume: PersistentVolume,
) -> None:
    world = careful()
    world.put(a_node("n1", labels={"topology.kubernetes.io/zone": "a"}), a_claim(), with_spec(volumes=[CLAIM]))
    assert world.settle().binds() == []
    world.put(volume, a_claim(volume="disk"))
    if volume.spec.node_affinity is None:
        assert world.settle(2).binds() == [("web", "n1")]
    else:
        world.settle(2)
        assert "didn't match PersistentVolume's node affinity" in world.message("web")


def test_one_that_stands_for_kube_scheduler_refuses_nothing_of_it() -> None:
    world = World(Scheduler([OURS]))
    world.put(a_node("n1"), with_spec(volumes=[CLAIM]))
    assert world.settle().binds() == [("web", "n1")]
