"""What counts as a change while a snapshot comes to rest, and what nodes do meanwhile and afterwards."""

from __future__ import annotations

import pytest

from wukong.actions import Action, Create, Delete, Note, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, DEPLOYMENTS, NODES, PODS
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.api.resources import Key
from wukong.app.snapshots import is_change, load, make_baseline
from wukong.embedded.actors.autoscaler.new_node import build_node
from wukong.embedded.scenario import Scenario
from wukong.ports import Document, PatchBody

WEB = Key("shop", "web")
SPEC, STATUS = {"spec": {"replicas": 2}}, {"status": {"replicas": 2}}
ACTIONS: dict[str, tuple[Action, bool]] = {
    "a note": (Note(PODS, WEB, "reason", "message"), False),
    "a pod is made": (Create(PODS, {}, "shop"), True),
    "a revision is written down": (Create(CONTROLLER_REVISIONS, {}, "shop"), False),
    "a revision goes": (Delete(CONTROLLER_REVISIONS, WEB), True),
    "a pod is patched": (Patch(PODS, WEB, PatchBody("merge", STATUS), "status"), True),
    "another size is wanted": (Patch(DEPLOYMENTS, WEB, PatchBody("merge", SPEC)), True),
    "a status is written": (Patch(DEPLOYMENTS, WEB, PatchBody("merge", STATUS), "status"), False),
    "operations": (Patch(NODES, Key("", "n"), PatchBody("json", [{"op": "remove", "path": "/spec/taints"}])), True),
}


@pytest.mark.parametrize("title", ACTIONS)
def test_pods_and_what_is_wanted_are_changes_and_what_is_said_of_them_is_not(title: str) -> None:
    action, expected = ACTIONS[title]
    assert is_change(action) is expected


def a_cluster(replicas: int) -> list[Document]:
    """Two nodes of a group, one of them empty, and a Deployment that runs on the other."""
    group = NodeGroup(name="workers", max=5, template=NodeTemplate(capacity={"cpu": 4}))
    nodes = [{"kind": "Node", "apiVersion": "v1", **build_node(group, f"workers-{number}")} for number in (1, 2)]
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return [*nodes, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": spec}]


def test_nodes_of_a_snapshot_stay_until_a_play_begins_and_come_and_go_in_each() -> None:
    group = NodeGroup(name="workers", max=5, boot_seconds=30, template=NodeTemplate(capacity={"cpu": 4}))
    baseline = make_baseline(load(a_cluster(replicas=1)), Scenario(node_groups=[group]))
    assert [event.text for event in baseline.before.timeline if event.text == "gone"] == []
    quiet = baseline.play(Scenario(), seed=1)
    assert (quiet.nodes.start, quiet.nodes.end) == (2, 1)
    more = baseline.play(Scenario(manifests=[a_cluster(replicas=10)[-1]]), seed=1)
    assert (more.nodes.start, more.nodes.max, more.nodes.end) == (2, 3, 3)
    assert more.workloads["default/web"].available == 10
    assert quiet.findings == more.findings == []
