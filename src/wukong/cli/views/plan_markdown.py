"""A plan as Markdown, for a pull request: the verdict as a heading, its problems as a list, all else folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape as escape_html

from wukong.cli.views.escaping import escape_line
from wukong.cli.views.plan import list_sections
from wukong.forecast.fields import Plan

_MARKS = {"completes": "✅", "degrades": "⚠️", "needs-nodes": "❌", "never-ends": "❌"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render_markdown(plan: Plan) -> Iterator[str]:
    """Lines. Names come from anybody: whatever Markdown or HTML would read is escaped."""
    verdict = plan.verdict
    yield f"### {_MARKS[verdict.kind]} {_escape(verdict.text)}"
    yield ""
    for problem in verdict.problems:
        subject = f"**{_escape(problem.subject)}**: " if problem.subject else ""
        yield f"- {subject}{_escape(problem.text)}"
    for title, lines in list_sections(plan):
        yield ""
        yield f"<details><summary>{escape_html(escape_line(title))}</summary>"
        yield ""
        yield "```text"
        yield from (_within_fence(line) for line in lines)
        yield "```"
        yield ""
        yield "</details>"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", escape_line(text)).replace("@", "&#64;")  # nobody is to be notified


def _within_fence(line: str) -> str:
    return escape_line(line).replace("```", "'''")
