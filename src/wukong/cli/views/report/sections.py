"""The parts of a report below its story, as tables and lists: what changes, who is touched, what blocks, advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wukong.app.install.text import as_yaml
from wukong.cli.views.plan import describe_action, format_field, list_sections
from wukong.cli.views.report.markup import Child, Html, join, paragraphs, tag
from wukong.forecast.durations import format_about
from wukong.forecast.fields import Advice, BlockedPod, ObjectChange, Plan, PlanWarning, WorkloadForecast

_MOST_ROWS, _MOST_FIELDS = 200, 40
_IN_LINES = ("Who else is touched", "Nodes", "Wrong before, and no worse now", "How long pods take", "Plays")
_CODE = ("Plays",)


def render_sections(plan: Plan) -> Iterator[Html]:
    """In the order in which one asks; what has nothing to say is left out."""
    lines = dict(list_sections(plan))
    yield from _section("What changes", _list_changes(plan.changes))
    yield from _section("Workloads", _list_workloads(plan.shown.workloads))
    for title in _IN_LINES[:2]:
        yield from _section(title, _list_lines(lines.get(title, ())))
    yield from _section("What blocks", _list_blocked(plan.shown.blocked))
    yield from _section("Warnings", _list_warnings(plan.warnings))
    yield from _section("What would make it safe", _list_advice(plan.advice, plan.seeds))
    for title in _IN_LINES[2:]:
        yield from _section(title, _list_lines(lines.get(title, ()), is_code=title in _CODE))


def _section(title: str, content: Html | None) -> Iterator[Html]:
    if content:
        yield tag("section", tag("h2", title), content)


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], numbers: Sequence[str] = ()) -> Html | None:
    """None without rows; of very many the first ones, and how many there are."""
    every = list(rows)
    if not every:
        return None
    kinds = ["number" if word in numbers else None for word in head]
    body = [
        tag("tr", (tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in every[:_MOST_ROWS]
    ]
    names = (tag("th", word, class_=kind) for word, kind in zip(head, kinds, strict=True))
    rest = len(every) - _MOST_ROWS
    return join(
        tag("div", tag("table", tag("thead", tag("tr", names)), tag("tbody", body)), class_="wide"),
        tag("p", f"… and {rest:,} more; -o json has them.", class_="quiet") if rest > 0 else None,
    )


def _list_lines(lines: Sequence[str], *, is_code: bool = False) -> Html | None:
    if not lines:
        return None
    if is_code:
        return tag("pre", paragraphs("\n".join(lines)))
    return tag("ul", (tag("li", line.strip()) for line in lines[:_MOST_ROWS]), class_="plain")


def _list_changes(changes: Sequence[ObjectChange]) -> Html | None:
    return table(
        ("object", "what happens", "fields"),
        ((f"{change.kind} {change.name}", describe_action(change), _list_fields(change)) for change in changes),
    )


def _list_fields(change: ObjectChange) -> Html:
    fields = [tag("li", tag("code", format_field(field))) for field in change.fields[:_MOST_FIELDS]]
    rest = len(change.fields) - _MOST_FIELDS
    return tag("ul", fields, tag("li", f"… and {rest:,} more; -o json has them") if rest > 0 else None, class_="plain")


def _list_workloads(workloads: dict[str, WorkloadForecast]) -> Html | None:
    numbers = ("wanted", "available", "lowest", "up to date", "evicted")
    return table(
        ("workload", "kind", *numbers),
        (
            (
                *(name, workload.kind, _format_change(workload.replicas_before, workload.replicas)),
                _format_change(workload.available_before, workload.available),
                *(workload.min_available if workload.available_before is not None else "", workload.up_to_date),
                workload.evicted,
            )
            for name, workload in workloads.items()
        ),
        numbers,
    )


def _format_change(before: int | None, after: int) -> str:
    return f"{after:,}" if before in (None, after) else f"{before:,} → {after:,}"


def _list_blocked(blocked: Sequence[BlockedPod]) -> Html | None:
    return table(
        ("pod", "nodes", "rule", "why"),
        (
            (pod.pod + (f" and {pod.others:,} more alike" if pod.others else ""), *reason)
            for pod in blocked
            for reason in _list_reasons(pod)
        ),
    )


def _list_reasons(pod: BlockedPod) -> Iterator[tuple[str, str, str]]:
    for reason in pod.reasons:
        rest = reason.nodes - len(reason.examples)
        names = ", ".join(reason.examples) + (f" and {rest:,} more" if rest > 0 else "")
        yield names, reason.plugin, reason.detail or reason.reason
    if not pod.reasons:
        yield "", "", pod.message


def _list_warnings(warnings: Sequence[PlanWarning]) -> Html | None:
    return table(
        ("about", "field", "what is wrong", "what helps"),
        (
            (warning.subject, tag("code", warning.path.removeprefix("$.")), warning.text, warning.fix)
            for warning in warnings
        ),
    )


def _list_advice(advice: Sequence[Advice], seeds: int) -> Html | None:
    if not advice:
        return None
    return tag("ol", (tag("li", _describe_advice(entry, seeds)) for entry in advice), class_="advice")


def _describe_advice(entry: Advice, seeds: int) -> Iterator[Html]:
    yield tag("b", entry.title)
    yield tag("p", f"Then it completes {format_about(entry.seconds)}, in {seeds} of {seeds}. {entry.text}")
    for nodes in entry.nodes:
        yield tag("p", "To try it: ", tag("code", f"--add-nodes {nodes.like}={nodes.count}"))
    if entry.commands:
        yield tag("pre", paragraphs("\n".join(entry.commands)))
    if entry.patches:
        yield tag("pre", paragraphs(as_yaml(entry.patches)))
