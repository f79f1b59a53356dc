"""A DaemonSet's status that is wrong at rest is found, unless its controller was not told what would set it right.

tests/live/test_late_daemon_sets.py shows the same of kube-controller-manager.
"""

from __future__ import annotations

import pytest

from embedded.checkers.checked_cluster import CheckedCluster, PodController
from wukong.actions import DONE
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.daemon_set.controller import DaemonSets
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.objects import Pod
from wukong.ports import PatchBody

AGENT = Key("default", "agent")


class Agents(CheckedCluster):
    """Two nodes with an agent each. Pods of nodes that are gone stay, and nobody takes taints off new nodes."""

    def __init__(self) -> None:
        super().__init__(
            PodController("podgc", lambda *_: DONE),
            PodController("nodelifecycle", lambda *_: DONE),
            PodController("kubelet", lambda *_: DONE),
        )
        for name in ("n0", "n1"):
            self.add_node(name)
        template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
        self.server.create(DAEMON_SETS, {"metadata": {"name": AGENT.name}, "spec": spec}, AGENT.namespace)
        self.world.run()
        for name, pod in zip(("n0", "n1"), list(self.world.state.all(Pod)), strict=True):
            self.server.bind(key_of(pod), name)
        self.world.run()

    def add_node(self, name: str) -> None:
        self.node(name)
        self.server.patch(NODES, Key("", name), PatchBody("merge", {"spec": {"taints": None}}))
        self.world.run()

    def remove_node(self, name: str) -> None:
        self.server.delete(NODES, Key("", name))
        self.world.run()

    def touch(self) -> None:
        """Have the controller look at the DaemonSet."""
        annotations = {"version": str(self.server.database.version)}
        self.server.patch(DAEMON_SETS, AGENT, PatchBody("merge", {"metadata": {"annotations": annotations}}))
        self.world.run()

    def count_scheduled(self) -> int:
        count: int = self.server.get(DAEMON_SETS, AGENT)["status"]["currentNumberScheduled"]
        return count


def test_a_node_that_comes_again_under_its_pod_is_not_counted_until_something_else_happens() -> None:
    cluster = Agents()
    assert (cluster.count_scheduled(), cluster.findings()) == (2, [])
    cluster.remove_node("n0")
    cluster.touch()
    cluster.add_node("n0")
    assert (cluster.count_scheduled(), cluster.findings()) == (1, [])
    cluster.touch()
    assert (cluster.count_scheduled(), cluster.findings()) == (2, [])


def test_a_node_that_was_away_while_nobody_looked_is_counted() -> None:
    cluster = Agents()
    cluster.remove_node("n0")
    cluster.add_node("n0")
    assert (cluster.count_scheduled(), cluster.findings()) == (2, [])


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_status_that_lacks_what_its_controller_knew_is_found(
    comes_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Agents()
    if comes_again:
        cluster.remove_node("n0")
        cluster.touch()
        cluster.add_node("n0")
    monkeypatch.setattr(DaemonSets, "reconcile", lambda *_: DONE)
    cluster.server.patch(DAEMON_SETS, AGENT, PatchBody("merge", {"status": {"currentNumberScheduled": 0}}), "status")
    (finding,) = cluster.findings()
    assert "at rest its status.currentNumberScheduled is 0, but should be 2" in finding


def test_a_pod_that_goes_with_its_node_is_no_longer_counted() -> None:
    cluster = Agents()
    cluster.remove_node("n0")
    (pod,) = cluster.world.state.pods_on("n0")
    cluster.server.delete(PODS, key_of(pod), DeleteOptions(grace_seconds=0))
    cluster.add_node("n0")
    assert cluster.findings() == []
