"""`wukong plan --report`: one file with all of the plan, in which no text of a cluster is more than text."""

from __future__ import annotations

import json
import os
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.conftest import Wukong
from forecast.clusters import Document, a_baseline, a_deployment, nodes, plan_on, required, running_on, with_image
from testbed.pytest_plugin import OpenPage
from wukong.cli.views.report import render_report
from wukong.cli.views.report.moments import MOST_ROWS, list_moments
from wukong.cli.views.report.svg_chart import list_time_marks
from wukong.embedded.scenario.record.story import Event
from wukong.forecast import Plan, PlannedChange
from wukong.forecast.fields import Advice, BlockedPod, NodeReason, PlanWarning
from wukong.forecast.placement_history import PlacementHistory, record_placement
from wukong.forecast.play import PlayOptions

FOLDER = Path(__file__).parents[2] / "examples" / "plan"
CLUSTER, WEB, FIXED = FOLDER / "cluster.yaml", FOLDER / "web.yaml", FOLDER / "web-fixed.yaml"
STUCK = a_deployment(affinity=required())
HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'\"&<!--"
# Fields with words of ours, which nobody else can set.
OUR_WORDS = ("source", "cause", "action", "version", "phase", "givesUp")


@cache
def stuck() -> tuple[Plan, PlacementHistory]:
    """A rollout that never ends, and where its pods are."""
    documents: list[Document] = [*nodes(3), STUCK, *running_on(STUCK, "node-1", "node-2", "node-3")]
    plan = plan_on(documents, with_image(STUCK), seeds=(1,))
    plan.warnings = [PlanWarning(code="a", subject="a", path="$.a", text="a", fix="a")]
    plan.advice = [Advice(code="a", title="a", text="a", gives_up="nothing", patches=[{"kind": "a"}], commands=["a"])]
    change = PlannedChange(documents=(with_image(STUCK),))
    return plan, record_placement(a_baseline(documents), change, PlayOptions(), 1)


def poison(value: Any, key: str = "") -> Any:
    """The same document with hostile text in every string that a cluster or a file could set, and in every name."""
    if isinstance(value, dict):
        is_by_name = key in ("workloads", "startTimes")
        return {(HOSTILE + name if is_by_name else name): poison(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [poison(item, key) for item in value]
    is_ours = key in OUR_WORDS or value in ("completes", "degrades", "needs-nodes", "never-ends")
    return value + HOSTILE if isinstance(value, str) and not is_ours else value


def make_hostile() -> tuple[Plan, PlacementHistory]:
    plan, history = stuck()
    blocked = [
        BlockedPod(workload="a", pod="a", message="a", reasons=[]),
        BlockedPod(
            workload="a", pod="a", message="", reasons=[NodeReason(plugin="a", reason="a", nodes=1, examples=["a"])]
        ),
    ]
    worse = msgspec.structs.replace(plan, shown=msgspec.structs.replace(plan.shown, blocked=blocked))
    hostile = msgspec.convert(poison(msgspec.to_builtins(worse)), Plan)
    document = msgspec.to_builtins(history)
    for pod in document["pods"]:
        pod["name"], pod["workload"] = pod["name"] + HOSTILE, HOSTILE
    for node in document["nodes"]:
        node["name"], node["instance_type"], node["zone"] = node["name"] + HOSTILE, HOSTILE, HOSTILE
    for span in (span for pod in document["pods"] for span in pod["spans"]):
        span["node"] += HOSTILE if span["node"] else ""
    for event in document["events"]:
        event["subject"], event["text"] = event["subject"] + HOSTILE, event["text"] + HOSTILE
    return hostile, msgspec.convert(document, PlacementHistory)


class Page(HTMLParser):
    """What a browser makes of a file: its elements, attributes and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            self.scripts[-1] += data
        else:
            self.text += data


def test_a_page_has_the_verdict_the_charts_both_maps_and_every_step() -> None:
    plan, history = stuck()
    text = render_report(plan, history)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert "Never ends, in 1 of 1." in page.text
    assert page.text.count("node-1") >= 2
    assert "ProgressDeadlineExceeded" in page.text
    assert page.tags.count("svg") == 1
    assert [title for title in ("What changes", "Workloads", "Step by step") if title not in page.text] == []
    assert render_report(plan, history) == text


def test_a_page_fetches_nothing() -> None:
    page = Page(render_report(*stuck()))
    assert {"link", "img", "iframe", "object", "a", "form", "base"}.isdisjoint(page.tags)
    assert {"src", "href", "action", "style"}.isdisjoint(name for name, _ in page.attributes)
    assert not [value for _, value in page.attributes if "://" in value]


def test_no_text_of_a_cluster_is_more_than_text() -> None:
    harmless, page = Page(render_report(*stuck())), Page(render_report(*make_hostile()))
    assert set(page.tags) <= set(harmless.tags) | {"li", "td"}
    assert len(page.scripts) == len(harmless.scripts) == 2
    assert page.scripts[1] == harmless.scripts[1]
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    data = json.loads(page.scripts[0])
    assert all(HOSTILE in node["name"] for node in data["nodes"])
    assert page.text.count(HOSTILE) > 20


def test_control_characters_and_half_characters_are_escaped() -> None:
    plan, history = stuck()
    strange = msgspec.structs.replace(plan, replay="\x1b[31m \u202e \ud800", advice=[])
    text = render_report(strange, history)
    assert text.encode("utf-8")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_short_story_has_a_moment_for_each_tenth_of_a_second() -> None:
    events = [Event(at, "shop/web", "ready") for at in (0.05, 0.3, 0.31, 1.7, 64.2)]
    moments = list_moments(PlacementHistory(seed=1, events=events))
    assert [(moment.at, moment.end, moment.title) for moment in moments.moments] == [
        (0.0, 0.0, "before the change"),
        (0.05, 0.1, "at once"),
        (0.31, 0.4, "after 0.3 s"),
        (1.7, 1.8, "after 1.7 s"),
        (64.2, 64.3, "after 1 min 4 s"),
    ]
    assert [(row.moment, row.second, row.text) for row in moments.rows][1] == (2, 0.3, "2 ready")


@pytest.mark.slow
def test_a_long_story_is_told_in_longer_steps_and_bounded() -> None:
    events = [Event(float(second), f"shop/web-{second}", f"event {second}") for second in range(20_000)]
    moments = list_moments(PlacementHistory(seed=1, events=events))
    assert len(moments.rows) == MOST_ROWS
    assert (moments.omitted_rows, moments.step_name) == (20_000 - MOST_ROWS, "10 minutes")
    assert len(moments.moments) == 1 + 34  # also of what is in no row
    assert moments.moments[-1].end > 19_999
    assert [moment.end for moment in moments.moments] == sorted(moment.end for moment in moments.moments)
    assert list_moments(PlacementHistory(seed=1, events=[])).moments[0].end == 1.0


@pytest.mark.parametrize(("start", "end"), [(0.0, 0.4), (0.0, 64.0), (598.0, 601.0), (0.0, 14_400.0), (0.0, 1e7)])
def test_marks_of_time_are_few_and_within_the_picture(start: float, end: float) -> None:
    marks = list_time_marks(start, end)
    assert 2 <= len(marks) <= 6
    assert all(start <= mark <= end for mark in marks)


def test_a_report_is_written_beside_what_is_printed(wukong: Wukong) -> None:
    run = wukong("plan", "-s", CLUSTER, "-f", WEB, "--seeds", "1", "--no-advice", "--report", "plan.html")
    assert (run.code, run.out.splitlines()[0]) == (1, "Never ends, in 1 of 1.")
    assert run.err == "note: wrote plan.html: open it in a browser.\n"
    assert "Never ends, in 1 of 1." in Path("plan.html").read_text("utf-8")
    assert os.listdir() == ["plan.html"]


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_played(wukong: Wukong) -> None:
    run = wukong("plan", "-s", CLUSTER, "-f", WEB, "--report", "missing/plan.html")
    assert (run.code, run.out) == (2, "")
    assert "--report missing/plan.html: cannot be written." in run.err
    both = wukong("plan", "-s", CLUSTER, "-f", WEB, "--report", "plan.html", "--story", "1")
    assert (both.code, "Leave one of them out" in both.err) == (2, True)
    assert os.listdir() == []


# ---- in a real browser


def pods_of(page: Any, place: str) -> list[str]:
    """The classes of the pods of a map, without the word that all have."""
    marks = page.locator(f"{place} .pod").evaluate_all("marks => marks.map(mark => mark.className)")
    return sorted(mark.removeprefix("pod ") for mark in marks)


@pytest.mark.slow
def test_the_slider_moves_the_map_and_the_cursor_of_the_chart(
    wukong: Wukong, open_page: OpenPage, tmp_path: Path
) -> None:
    wukong("plan", "-s", CLUSTER, "-f", FIXED, "--seeds", "1", "--report", "plan.html")
    file, problems = Path("plan.html"), list[str]()
    still = open_page(file, java_script_enabled=False)
    assert still.locator("#verdict").inner_text() == "Completes in about 1 min 4 s, in 1 of 1."
    assert not still.locator("#slider").is_visible()
    assert still.get_by_text("spec.template.spec.containers[web].image").first.is_visible()
    without_script = still.locator("#map").inner_html()

    page = open_page(file)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url))
    last = int(page.locator("#slider").get_attribute("max") or 0)
    assert page.locator("#map").inner_html() == without_script  # the script draws what is there without it
    assert pods_of(page, "#map") == ["new ready"] * 3
    end = float(page.locator("svg .cursor").get_attribute("x1") or 0)
    page.locator("#slider").fill("0")
    assert page.locator("#moment").inner_text() == "before the change"
    assert pods_of(page, "#map") == ["old ready"] * 3
    assert float(page.locator("svg .cursor").get_attribute("x1") or 0) < end
    assert page.locator("#rows tr.later").count() == page.locator("#rows tr").count()
    page.locator("#slider").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#moment").inner_text() == "at once"
    page.locator("#slider").fill(str(last // 2))
    assert {mark.split()[0] for mark in pods_of(page, "#map")} == {"old", "new"}
    assert page.locator("#rows tr.current").count() > 0
    page.locator("#rows tr").last.click()
    assert page.locator("#slider").input_value() == str(last)
    assert problems == []

    dark = open_page(file, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) != dark.evaluate(background)
    narrow = open_page(file, viewport={"width": 380, "height": 700})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 380
    assert len(page.screenshot(path=tmp_path / "plan.png", full_page=True)) > 20_000


@pytest.mark.slow
def test_hostile_names_are_shown_and_never_run(open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    file.write_text(render_report(*make_hostile()), "utf-8")
    page = open_page(file)
    for moment in ("0", "1"):
        page.locator("#slider").fill(moment)
        assert HOSTILE in page.locator("#map b").first.inner_text()
    assert page.title().startswith("Plan: ")
    assert page.locator("img").count() == 0
    # Even what got into the page would not run: its head allows our own script alone.
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert page.title().startswith("Plan: ")
