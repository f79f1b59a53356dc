"""A node with a notice is written down, closed, and opened again when the notice is withdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_node
from wukong.actions import DONE, Note, Outcome, Patch
from wukong.api.core import Node, NodeCondition
from wukong.api.resources import Key
from wukong.api.times import format_time
from wukong.controllers.spot.nodes import SpotNodes
from wukong.controllers.spot.notices import SILENT_SECONDS, Course, Notice, read_notice
from wukong.controllers.spot.records import RECORD, TAINT, LeavingNodes, Record, format_record, make_record, read_record
from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.leaving_nodes import NOTICE, TAINTS
from wukong.placement.notice_annotation import parse_duration
from wukong.state import State

NOW = 1_800_000_000.0
KEY = Key("", "s1")
TWO_MINUTES = make_record(
    Notice(f"annotation {NOTICE}", Course.RECLAIM, seconds=120.0), NOW, is_cordoned=True
)  # as it is written for a notice of 2m


def a_spot_node(notice: str | None = None, record: Record | None = None, **more: Any) -> Node:
    node = a_node("s1", labels={OWN_LABEL: "spot"}, **more)
    node.metadata.resource_version, node.metadata.uid = "7", "u"
    if notice is not None:
        node.metadata.annotations[NOTICE] = notice
    if record is not None:
        node.metadata.annotations[RECORD] = format_record(record)
    return node


def look(node: Node, controller: SpotNodes | None = None, now: float = NOW) -> Outcome:
    state = State()
    state.apply("ADDED", node)
    return (controller or SpotNodes()).reconcile(KEY, state, now)


def patch_of(outcome: Outcome) -> dict[str, Any]:
    """What the patch sets, by path; the version that it is about aside."""
    patch = outcome.actions[0]
    assert isinstance(patch, Patch)
    version, *operations = patch.patch.body
    assert version == {"op": "add", "path": "/metadata/resourceVersion", "value": "7"}
    return {f"{it['op']} {it['path']}": it.get("value") for it in operations}


def written_record(outcome: Outcome) -> Record:
    patch = patch_of(outcome)
    node = a_node("s1")
    whole: dict[str, str] = patch.get("add /metadata/annotations", {})
    node.metadata.annotations[RECORD] = whole.get(RECORD) or patch[f"add {record_path()}"]
    record = read_record(node)
    assert record is not None
    return record


def record_path() -> str:
    return "/metadata/annotations/" + RECORD.replace("/", "~1")


def test_a_node_with_a_notice_is_cordoned_tainted_and_written_down_in_one_patch() -> None:
    outcome = look(a_spot_node("2m"))
    patch = patch_of(outcome)
    assert patch["add /spec/taints"] == [{"key": TAINT, "effect": "NoSchedule"}]
    assert patch["add /spec/unschedulable"] is True
    record = written_record(outcome)
    assert (record.course, record.deadline_at, record.cordoned) == (Course.RECLAIM, NOW + 120, True)
    note = outcome.actions[1]
    assert isinstance(note, Note)
    assert note.reason == "NodeLeaving"
    assert note.is_warning


def test_what_was_written_down_is_not_written_again() -> None:
    node = a_spot_node("2m", TWO_MINUTES, taints=[f"{TAINT}:NoSchedule"], unschedulable=True)
    assert look(node, now=NOW + 30) == DONE


def test_a_notice_is_counted_from_when_it_was_first_seen_also_after_a_restart() -> None:
    node = a_spot_node("2m", TWO_MINUTES, unschedulable=True)  # somebody took our taint away
    outcome = look(node, now=NOW + 30)
    assert written_record(outcome).deadline_at == NOW + 120
    assert patch_of(outcome)["add /spec/taints"] == [{"key": TAINT, "effect": "NoSchedule"}]


def test_a_withdrawn_notice_opens_the_node_again_and_leaves_other_taints_alone() -> None:
    record = Record(source="annotation", course=Course.RECLAIM, seen=format_time(NOW), cordoned=True)
    node = a_spot_node(None, record, taints=["mine=1:NoSchedule", f"{TAINT}:NoSchedule"], unschedulable=True)
    patch = patch_of(look(node))
    assert patch == {
        f"remove {record_path()}": None,
        "remove /spec/taints/1": None,
        "remove /spec/unschedulable": None,
    }


def test_a_cordon_of_somebody_else_stays_when_the_notice_is_withdrawn() -> None:
    first = look(a_spot_node("2m", unschedulable=True))
    assert "add /spec/unschedulable" not in patch_of(first)
    record = written_record(first)
    assert not record.cordoned
    withdrawn = patch_of(look(a_spot_node(None, record, taints=[f"{TAINT}:NoSchedule"], unschedulable=True)))
    assert "remove /spec/unschedulable" not in withdrawn


def test_the_patch_is_one_that_an_api_server_applies() -> None:
    node = a_spot_node("2m", taints=["mine=1:NoSchedule"])
    patch = look(node).actions[0]
    assert isinstance(patch, Patch)
    document: dict[str, Any] = {
        "metadata": {"name": "s1", "annotations": {NOTICE: "2m"}},
        "spec": {
            "taints": [{"key": "mine", "value": "1", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]
        },
    }
    patched = apply_json_patch(document, patch.patch.body)
    assert patched["spec"]["taints"][0] == document["spec"]["taints"][0]  # as it was, its time too
    assert patched["spec"]["taints"][1] == {"key": TAINT, "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "course", "effect", "is_cordoned"),
    [
        (TAINTS[0], Course.RECLAIM, "NoSchedule", True),
        ("aws-node-termination-handler/rebalance-recommendation", Course.RECOMMEND, "PreferNoSchedule", False),
        ("karpenter.sh/disrupted", Course.DRAIN, None, False),
        ("ToBeDeletedByClusterAutoscaler", Course.DRAIN, None, False),
        ("cloud.google.com/impending-node-termination", Course.RECLAIM, "NoSchedule", True),
        ("node.kubernetes.io/out-of-service", Course.LOST, "NoSchedule", False),
    ],
)
def test_what_is_done_to_a_node_depends_on_who_ends_it(
    taint: str, course: Course, effect: str | None, is_cordoned: bool
) -> None:
    outcome = look(a_spot_node(taints=[f"{taint}:NoSchedule"]))
    record, patch = written_record(outcome), patch_of(outcome)
    assert (record.course, record.cordoned) == (course, is_cordoned)
    assert patch.get("add /spec/taints/-", {}).get("effect") == effect
    assert ("add /spec/unschedulable" in patch) == is_cordoned


def test_every_taint_of_a_leaving_node_has_its_course() -> None:
    for taint in TAINTS:
        assert read_notice(a_spot_node(taints=[f"{taint}:NoSchedule"])) is not None, taint


def test_the_gravest_of_several_notices_counts() -> None:
    soft = "aws-node-termination-handler/rebalance-recommendation"
    notice = read_notice(a_spot_node("90s", taints=[f"{soft}:NoSchedule"]))
    assert notice is not None
    assert (notice.course, notice.seconds) == (Course.RECLAIM, 90.0)


def test_a_spot_node_that_is_silent_counts_as_lost_after_a_minute_and_no_other_node_does() -> None:
    controller, node = SpotNodes(), a_spot_node()
    node.status.conditions = [NodeCondition(type="Ready", status="Unknown")]
    assert look(node, controller) == Outcome(requeue_after=SILENT_SECONDS)
    assert look(node, controller, NOW + 20) == Outcome(requeue_after=SILENT_SECONDS - 20)
    assert written_record(look(node, controller, NOW + SILENT_SECONDS)).course == Course.LOST
    steady = a_node("s1")
    steady.status.conditions = node.status.conditions
    assert look(steady, SpotNodes()) == DONE


def test_a_lost_node_that_answers_again_is_opened() -> None:
    record = Record(source="condition Ready: Unknown", course=Course.LOST, seen=format_time(NOW))
    node = a_spot_node(None, record, taints=[f"{TAINT}:NoSchedule"])
    node.status.conditions = [NodeCondition(type="Ready", status="True")]
    assert f"remove {record_path()}" in patch_of(look(node))


def test_a_taint_that_came_with_a_node_made_again_is_taken_away() -> None:
    assert patch_of(look(a_spot_node(taints=[f"{TAINT}:NoSchedule"]))) == {"remove /spec/taints/0": None}


@pytest.mark.parametrize("text", ["{", "[]", '{"source": 1}', '{"source": "x"}', "x" * 2000])
def test_a_record_that_cannot_be_read_is_none_and_is_removed(text: str) -> None:
    node = a_spot_node()
    node.metadata.annotations[RECORD] = text
    assert read_record(node) is None
    assert f"remove {record_path()}" in patch_of(look(node))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2m", 120.0), ("90s", 90.0), ("1h30m", 5400.0), ("", None), ("soon", None), ("-5s", None), ("5", None)],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_the_annotation_may_name_a_moment_or_anything() -> None:
    moment = written_record(look(a_spot_node("2027-01-15T08:00:50Z")))
    assert moment.deadline == "2027-01-15T08:00:50Z"
    assert written_record(look(a_spot_node("soon"))).deadline == ""


def test_the_index_of_leaving_nodes_follows_records() -> None:
    index, node = LeavingNodes(), a_spot_node("2m")
    with_record = a_spot_node("2m", TWO_MINUTES)
    index.note("Node", KEY, None, with_record)
    copy = index.fork()
    index.note("Node", KEY, with_record, node)
    assert (copy.records, index.records) == ({"s1": TWO_MINUTES}, {})
