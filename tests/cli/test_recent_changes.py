"""What changed last: the order in which a live view shows more than it has room for."""

from __future__ import annotations

from msgspec.structs import replace

from builders import a_node, a_pod
from wukong.api.core import NodeCondition
from wukong.cli.views.recent_changes import RecentChanges


def test_the_node_and_the_workload_of_a_pod_have_changed_with_it() -> None:
    changes = RecentChanges()
    changes.note(None, a_pod("web-1", node="n1"), "default/web")
    changes.note(a_pod("db-1", node="n2"), None, "default/db")
    changes.note(None, a_pod("web-2"), "default/web")
    assert changes.list_nodes() == ["n2", "n1"]
    assert changes.rank_node("n2") > changes.rank_node("n1") > changes.rank_node("n3") == 0
    assert changes.rank_workload("default/web") > changes.rank_workload("default/db") > 0


def test_a_node_changes_when_it_comes_is_cordoned_or_falls_silent_but_not_by_its_heartbeat() -> None:
    node = a_node("n1")
    ready = replace(node, status=replace(node.status, conditions=[NodeCondition(type="Ready", status="True")]))
    silent = replace(node, status=replace(node.status, conditions=[NodeCondition(type="Ready", status="Unknown")]))
    cordoned = a_node("n1", unschedulable=True)
    for old, new, is_change in (
        (None, node, True),
        (node, None, True),
        (node, cordoned, True),
        (ready, silent, True),
        (ready, replace(ready), False),
    ):
        changes = RecentChanges()
        changes.note(old, new, "")
        assert bool(changes.list_nodes()) == is_change


def test_no_more_is_remembered_than_is_ever_shown() -> None:
    changes = RecentChanges()
    for number in range(3000):
        changes.note(None, a_pod(f"web-{number}", node=f"n{number}"), f"default/web-{number}")
    assert len(changes.list_nodes()) == 1000
    assert changes.list_nodes()[0] == "n2999"
    assert changes.rank_workload("default/web-1") == 0
