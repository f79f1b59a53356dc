"""`render_report`: a plan as one HTML page, with its style, its script and its data inside; nothing is fetched.

The verdict, the charts, the maps of before and after and every table are there without a script. The script draws the
second map again while its slider is moved. Names and messages come from anybody: whatever is written here goes through
markup.py, and a policy in the page's head lets no other script or style run than the two beside this module.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files

import msgspec

from wukong import __version__
from wukong.cli.views.console import count
from wukong.cli.views.plan import choose_courses, describe_course
from wukong.cli.views.report.markup import Html, embed_json, join, tag, trust
from wukong.cli.views.report.moments import Moments, list_moments
from wukong.cli.views.report.pod_map import WAITING, describe_node, describe_scope, draw_map, list_legend
from wukong.cli.views.report.sections import render_sections
from wukong.cli.views.report.svg_chart import SERIES, draw_chart, list_series
from wukong.cli.views.story import format_clock
from wukong.forecast.fields import Plan
from wukong.forecast.placement_history import PlacementHistory

_MOST_CHARTS, _MANY_NODES = 8, 24


def render_report(plan: Plan, history: PlacementHistory) -> str:
    """The whole file. The same plan gives the same file."""
    style, script = (_read_asset(name) for name in ("style.css", "script.js"))
    moments = list_moments(history)
    body = tag(
        "body",
        tag("header", _render_verdict(plan)),
        tag("main", _render_story(plan, history, moments), render_sections(plan)),
        tag("footer", tag("p", f"wukong {__version__} · {describe_seeds(plan)}")),
        tag("script", embed_json(_list_data(history, moments)), id="plan-data", type="application/json"),
        tag("script", trust(script)),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_build_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Plan: {plan.verdict.text}"),
        tag("style", trust(style)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _read_asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _build_policy(style: str, script: str) -> str:
    """Nothing is loaded, and only this style and this script count, told by their digests."""
    style_source, script_source = (_digest(text) for text in (style, script))
    return (
        f"default-src 'none'; style-src '{style_source}'; script-src '{script_source}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _render_verdict(plan: Plan) -> Iterator[Html]:
    verdict = plan.verdict
    yield tag("p", "wukong plan", class_="kicker")
    yield tag("h1", f"{verdict.text}.", class_=verdict.kind, id="verdict")
    if verdict.problems:
        yield tag(
            "ul",
            (
                tag("li", (tag("b", problem.subject), ": ") if problem.subject else None, problem.text)
                for problem in verdict.problems
            ),
            class_="problems",
        )


def describe_seeds(plan: Plan) -> str:
    """From which play the pictures are."""
    worst = " of the worst outcome" if len(plan.outcomes) > 1 else ""
    return f"played with {count(plan.seeds, 'seed')}; shown is seed {plan.shown.seed}{worst}"


# ---- the story


def _render_story(plan: Plan, history: PlacementHistory, moments: Moments) -> Html:
    kind = "map dense" if len(history.nodes) > _MANY_NODES else "map"
    return tag(
        "section",
        tag("h2", "What happens"),
        _render_charts(plan),
        _render_slider(moments),
        tag(
            "div",
            tag("div", tag("h3", "Nodes before"), tag("div", draw_map(history, 0.0), class_=kind)),
            tag(
                "div",
                tag("h3", "Nodes after", id="moment-title"),
                tag("div", draw_map(history, moments.moments[-1].end), class_=kind, id="map"),
            ),
            class_="maps",
        ),
        list_legend(),
        tag("p", describe_scope(history), class_="quiet", id="scope"),
        tag("h3", "Step by step"),
        _render_rows(moments),
        id="story",
    )


def _render_charts(plan: Plan) -> Iterator[Html]:
    drawn: set[str] = set()
    for name, workload in choose_courses(plan.shown.workloads, _MOST_CHARTS):
        picture = draw_chart(name, workload)
        if picture is not None:
            drawn |= list_series(workload).keys()
            yield tag("h3", describe_course(name, workload))
            yield picture
    keys = [tag("span", tag("i", class_=f"key {word}"), word) for word in SERIES if word in drawn]
    if keys:
        yield tag("p", keys, class_="legend")


def _render_slider(moments: Moments) -> Html:
    """Shown by the script: without it there is nothing to be moved."""
    last = len(moments.moments) - 1
    return tag(
        "div",
        tag("button", "▶", type="button", id="play", aria_label="Play the story"),
        tag("input", type="range", id="slider", min=0, max=last, value=last, step=1, aria_label="Moment of the story"),
        tag("output", id="moment", for_="slider"),
        class_="slider",
        hidden=True,
        id="controls",
    )


def _render_rows(moments: Moments) -> Html:
    if not moments.rows:
        return tag("p", "Nothing happens.")
    rows = [
        tag(
            "tr",
            tag("td", _format_time(row.second)),
            tag("td", row.subject),
            tag("td", row.text),
            data_moment=row.moment,
        )
        for row in moments.rows
    ]
    head = tag("tr", tag("th", "time"), tag("th", "what"), tag("th", "happens"))
    notes = [
        *([f"In steps of {moments.step_name}."] if moments.step_name else []),
        *([f"{moments.omitted_rows:,} more steps are left out; --story has them."] if moments.omitted_rows else []),
    ]
    return join(
        tag("div", tag("table", tag("thead", head), tag("tbody", rows, id="rows")), class_="wide rows"),
        tag("p", " ".join(notes), class_="quiet") if notes else None,
    )


def _format_time(second: float) -> str:
    """`00:01:04`, with tenths where it has some."""
    tenths = round(second % 1 * 10)
    return format_clock(second) + (f".{tenths}" if tenths else "")


def _list_data(history: PlacementHistory, moments: Moments) -> object:
    """What the script draws maps of."""
    return {
        "moments": [moment._asdict() for moment in moments.moments],
        "nodes": [
            {
                "name": node.name,
                "about": describe_node(node),
                "others": node.other_pods,
                "spans": [[span.at, span.phase] for span in node.spans],
            }
            for node in history.nodes
        ],
        "pods": [
            {"name": pod.name, "version": pod.version, "spans": [msgspec.structs.astuple(span) for span in pod.spans]}
            for pod in history.pods
        ],
        "words": {"unplaced": WAITING},
    }
