"""The notice on a Node: what people and programs write, and who may replace or withdraw what."""

from __future__ import annotations

import pytest

from builders import a_node
from wukong.controllers.spot.notices import Course, Notice, read_notice
from wukong.controllers.spot.records import format_record, make_record, read_record
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.notice_annotation import (
    LONGEST_SOURCE,
    RECLAIM,
    RECOMMEND,
    StatedNotice,
    Update,
    read_annotation,
    read_stated,
    state_notice,
    update_annotation,
)

NOW = 1_800_000_000.0
US, HOOK = "agent aws", "hook eventbridge"


def stated(course: str = RECLAIM, seconds: float | None = 120, source: str = US, action: str = "stop") -> StatedNotice:
    return state_notice(source, course, action, None if seconds is None else NOW + seconds)


def written(notice: StatedNotice | None, text: str | None = None, source: str = US, *, is_exact: bool = True) -> str:
    update = update_annotation(text, notice, source, NOW, is_exact=is_exact)
    assert update is not None
    assert update.text is not None
    return update.text


def test_a_notice_is_read_as_it_was_written() -> None:
    text = written(stated())
    assert read_stated(text) == stated()
    assert read_annotation(text) == (US, RECLAIM, None, NOW + 120)


def test_the_spot_component_reads_source_course_and_moment() -> None:
    node = a_node("s1")
    node.metadata.annotations[NOTICE] = written(stated())
    assert read_notice(node) == Notice(US, Course.RECLAIM, deadline=NOW + 120)
    node.metadata.annotations[NOTICE] = written(stated(RECOMMEND, None, action="rebalance"))
    assert read_notice(node) == Notice(US, Course.RECOMMEND)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "null",
        '{"source": 7}',
        '{"source": "x", "course": "Lost"}',
        '{"source": "x"' + " " * 3000 + "}",
        "[" * 5000,
        "\ud800{",
    ],
)
def test_whatever_cannot_be_read_is_a_notice_without_a_time(text: str) -> None:
    node = a_node("s1")
    node.metadata.annotations[NOTICE] = text
    assert read_notice(node) == Notice(f"annotation {NOTICE}", Course.RECLAIM)


def test_a_source_without_end_is_cut_so_that_the_record_of_it_can_be_read() -> None:
    node = a_node("s1")
    node.metadata.annotations[NOTICE] = '{"source": "' + "\\u0001" * 300 + '"}'
    notice = read_notice(node)
    assert notice is not None
    assert len(notice.source) == LONGEST_SOURCE
    record = make_record(notice, NOW, is_cordoned=True)
    node.metadata.annotations["placement.novasphere.dev/leaving"] = format_record(record)
    assert read_record(node) == record


def test_the_same_notice_again_changes_nothing() -> None:
    assert update_annotation(written(stated()), stated(), US, NOW) is None


def test_another_moment_of_the_cloud_is_written_and_our_own_count_is_not() -> None:
    text = written(stated())
    later = stated(seconds=130)
    assert update_annotation(text, later, US, NOW, is_exact=False) is None
    assert read_stated(written(later, text)) == later
    sooner = stated(seconds=60)
    assert read_stated(written(sooner, text, is_exact=False)) == sooner


def test_another_action_is_another_notice_even_if_the_moment_is_counted() -> None:
    other = stated(action="hibernate", seconds=130)
    assert read_stated(written(other, written(stated()), is_exact=False)) == other


def test_only_ones_own_notice_is_withdrawn() -> None:
    assert update_annotation(written(stated()), None, US, NOW) == Update(None)
    for text in (None, "2m", written(stated(source=HOOK), source=HOOK)):
        assert update_annotation(text, None, US, NOW) is None


@pytest.mark.parametrize(
    ("theirs", "ours", "is_replaced"),
    [
        ("5m", stated(seconds=120), True),
        ("2m", stated(seconds=120), False),
        ("1m", stated(seconds=120), False),
        ("maintenance", stated(seconds=120), True),
        ("maintenance", stated(seconds=None), False),
        ("5m", stated(seconds=None), False),
        ("5m", stated(RECOMMEND, None), False),
        ('{"source": "x", "course": "Recommend"}', stated(seconds=None), True),
        ('{"source": "x", "course": "Recommend"}', stated(RECOMMEND, None), False),
    ],
)
def test_somebody_elses_notice_is_replaced_by_a_graver_or_a_sooner_one(
    theirs: str, ours: StatedNotice, is_replaced: bool
) -> None:
    assert (update_annotation(theirs, ours, US, NOW) is not None) is is_replaced


def test_what_was_replaced_comes_back_when_the_graver_notice_is_withdrawn() -> None:
    text = written(stated(seconds=60), "5m")
    assert read_stated(text) == StatedNotice(US, "Reclaim", "stop", stated(seconds=60).deadline, before="5m")
    sooner = written(stated(seconds=30), text)
    assert update_annotation(sooner, None, US, NOW) == Update("5m")


def test_a_long_text_of_somebody_else_is_not_carried_along() -> None:
    assert read_stated(written(stated(), "x" * 501)) == stated()
    kept = read_stated(written(stated(), "x" * 500))
    assert kept is not None
    assert kept.before == "x" * 500
