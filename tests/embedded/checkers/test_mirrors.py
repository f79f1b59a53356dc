"""A mirror that does not hold at rest what the server holds is found, also where only what was written is compared."""

from __future__ import annotations

import pytest

from embedded.checkers.checked_cluster import CheckedCluster
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.embedded.checkers import mirrors
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.objects import Pod
from wukong.ports import PatchBody

ONE, TWO = Key("default", "one"), Key("default", "two")


def a_cluster() -> CheckedCluster:
    """A node with two pods that wait for nobody."""
    cluster = CheckedCluster()
    cluster.node("n0")
    for key in (ONE, TWO):
        cluster.pod(key.name, nodeName="n0")
    cluster.world.run()
    return cluster


def check(cluster: CheckedCluster, since: int | None = None) -> list[str]:
    findings = Findings(cluster.world)
    mirrors.check(findings, since)
    return [f"{finding.subject} {finding.text}" for finding in findings.all]


def version_of(cluster: CheckedCluster, key: Key) -> str:
    version: str = cluster.server.get(PODS, key)["metadata"]["resourceVersion"]
    return version


def lose(cluster: CheckedCluster, key: Key) -> None:
    """Have the mirror forget a pod that is still there."""
    pod = cluster.world.state.get(Pod, key)
    assert pod is not None
    cluster.world.state.apply("DELETED", pod)


def test_a_mirror_that_holds_everything_is_right() -> None:
    cluster = a_cluster()
    assert check(cluster) == check(cluster, 0) == []


def test_what_is_missing_or_older_in_a_mirror_is_found() -> None:
    cluster = a_cluster()
    old = cluster.world.state.get(Pod, TWO)
    assert old is not None
    cluster.server.patch(PODS, TWO, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    cluster.world.run()
    lose(cluster, ONE)
    assert check(cluster) == [
        f"pod default/one at rest all has version none of it, the server {version_of(cluster, ONE)}; 1 such objects"
    ]
    cluster.world.state.apply("MODIFIED", old)
    (finding,) = check(cluster)
    assert finding.startswith("pod default/one ")
    assert finding.endswith("; 2 such objects")


def test_what_is_in_a_mirror_only_is_found() -> None:
    cluster = a_cluster()
    pod = cluster.world.state.get(Pod, ONE)
    assert pod is not None
    cluster.server.database.remove("pods", ONE)
    cluster.world.run()
    assert check(cluster) == []
    cluster.world.state.apply("ADDED", pod)
    (finding,) = check(cluster)
    assert finding.startswith("pod default/one at rest all has version ")
    assert finding.endswith(" of it, the server none; 1 such objects")


@pytest.mark.parametrize(("lost", "is_found"), [(ONE, False), (TWO, True)])
def test_only_what_was_written_since_is_compared(lost: Key, is_found: bool) -> None:
    cluster = a_cluster()
    since = cluster.server.database.version
    cluster.server.patch(PODS, TWO, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    cluster.world.run()
    lose(cluster, lost)
    assert bool(check(cluster, since)) is is_found
    assert check(cluster)


def test_where_the_log_does_not_reach_back_all_are_compared() -> None:
    cluster = a_cluster()
    lose(cluster, ONE)
    since = cluster.server.database.version
    cluster.server.patch(PODS, TWO, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    cluster.world.run()
    assert check(cluster, since) == []
    cluster.world.compact()
    (finding,) = check(cluster, since)
    assert finding.startswith("pod default/one ")
