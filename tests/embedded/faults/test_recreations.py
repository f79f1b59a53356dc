"""What disturbances make anew: a node as it first registered, a pod without its node; and when a rollout is over."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.kinds import DEPLOYMENTS, NODES
from wukong.api.resources import Key
from wukong.embedded.faults import Episode, Faults
from wukong.embedded.faults.disturbances import (
    ACTOR,
    _build_new_node,
    _build_new_pod,
    _build_scale_patch,
    _is_complete,
    _patch_node,
)
from wukong.placement.leaving_nodes import TAINTS


def test_a_node_that_is_made_anew_keeps_its_labels_its_room_and_the_taints_of_its_owner() -> None:
    own, cordon = {"key": "spot", "effect": "NoSchedule"}, {"key": "node.kubernetes.io/unschedulable", "effect": "x"}
    leaving = {"key": TAINTS[0], "effect": "NoExecute"}
    node = {
        "metadata": {"name": "n0", "uid": "u", "labels": {"zone": "a"}, "annotations": {"a": "b"}},
        "spec": {"taints": [own, cordon, leaving], "unschedulable": True},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "images": [], "conditions": []},
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    assert _build_new_node(node) == {
        "metadata": {"name": "n0", "labels": {"zone": "a"}},
        "spec": {"taints": [own]},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}, "conditions": [ready]},
    }
    bare = {"metadata": {"name": "n0"}, "spec": {"taints": [leaving]}, "status": {}}
    assert _build_new_node(bare) == {
        "metadata": {"name": "n0", "labels": {}},
        "spec": {},
        "status": {"conditions": [ready]},
    }


def test_a_pod_that_is_made_anew_has_its_name_labels_and_spec_and_no_node() -> None:
    meta = {"name": "web", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}, "resourceVersion": "5"}
    pod = {"metadata": meta, "spec": {"nodeName": "n0", "containers": []}, "status": {"phase": "Running"}}
    assert _build_new_pod(pod) == {
        "metadata": {"name": "web", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"containers": []},
    }
    assert _build_new_pod({"metadata": {"name": "web"}, "spec": {}}) == {"metadata": {"name": "web"}, "spec": {}}


@pytest.mark.parametrize(
    ("replicas", "status", "is_complete"),
    [
        (2, {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        (2, {"observedGeneration": 4, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        (2, {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, False),
        (2, {"observedGeneration": 3, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, False),
        (2, {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}, False),
        (2, {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, False),
        (None, {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, True),
        (0, {"observedGeneration": 3}, True),
        (1, None, False),
    ],
)
def test_a_rollout_is_complete_when_all_are_new_and_available_and_none_is_left(
    replicas: int | None, status: dict[str, Any] | None, is_complete: bool
) -> None:
    spec = {} if replicas is None else {"replicas": replicas}
    deployment: dict[str, Any] = {"metadata": {"generation": 3}, "spec": spec}
    assert _is_complete(deployment | ({"status": status} if status is not None else {})) is is_complete


@pytest.mark.parametrize("seed", range(5))
def test_moments_lie_within_their_episode_as_many_as_its_rate_asks_for(seed: int) -> None:
    faults = Faults(seed, [])
    episode = Episode("recreated", 100.0, 700.0, 2.5)
    moments = faults._draw_moments(0, episode)
    assert len(moments) in (25, 26)
    assert moments == sorted(moments)
    assert 100.0 <= moments[0] < 250.0
    assert 550.0 < moments[-1] < 700.0
    assert faults._draw_moments(1, episode) != moments
    assert faults._draw_moments(0, episode) == moments
    assert faults._draw_moments(0, episode._replace(is_once=True)) == [100.0]
    assert faults._draw_moments(0, episode._replace(rate=0.0)) == []


def test_what_disturbances_write_is_theirs_and_nothing_else() -> None:
    scale = _build_scale_patch(Key("shop", "web"), 4)
    assert (scale.resource, scale.key, scale.patch.type) == (DEPLOYMENTS, Key("shop", "web"), "merge")
    assert scale.patch.body == {"spec": {"replicas": 4}}
    node = _patch_node("n0", {"spec": {"unschedulable": True}})
    assert (node.resource, node.key, node.patch.body) == (NODES, Key("", "n0"), {"spec": {"unschedulable": True}})
    assert scale.patch.manager == node.patch.manager == ACTOR
