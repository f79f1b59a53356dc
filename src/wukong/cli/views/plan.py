"""What `wukong plan` shows people: the verdict first, then what changes, the course, who is touched, what blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from rich.text import Text

from wukong.cli.views.advice import show_advice, wrap_text
from wukong.cli.views.chart import draw_course
from wukong.cli.views.console import Part, count
from wukong.cli.views.table import name_some
from wukong.forecast.durations import format_about, format_seconds
from wukong.forecast.fields import (
    BlockedPod,
    Cost,
    DisruptedPod,
    FieldChange,
    NodeForecast,
    ObjectChange,
    Outcome,
    Plan,
    PlanWarning,
    WorkloadForecast,
)
from wukong.forecast.start_times import StartTime
from wukong.forecast.stop_times import StopTime
from wukong.forecast.verdict import describe_nodes

_MOST_FIELDS, _MOST_ROWS, _MOST_CHARTS, _MOST_TEXT = 12, 8, 3, 100
_STYLES = {"completes": "bold green", "degrades": "bold yellow", "needs-nodes": "bold red", "never-ends": "bold red"}
_ACTIONS = {
    "create": "is created",
    "delete": "is deleted",
    "none": "stays as it is",
    "drain": "is drained",
    "remove": "is drained and taken away",
    "lose": "is lost",
    "add": "is added",
}


def render_plan(plan: Plan) -> Iterable[Part]:
    """All of it, in the order in which one asks."""
    yield from show_verdict(plan)
    for title, lines in list_sections(plan):
        yield ""
        yield Text(title, style="bold")
        yield from (f"  {line}" for line in lines)


def show_verdict(plan: Plan) -> Iterator[Part]:
    verdict = plan.verdict
    yield Text(f"{verdict.text}.", style=_STYLES[verdict.kind])
    for problem in verdict.problems:
        yield f"  {problem.subject}: {problem.text}" if problem.subject else f"  {problem.text}"


def list_sections(plan: Plan) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines; what has nothing to say is left out."""
    play = plan.shown
    sections = [
        ("What changes", list(_show_changes(plan.changes))),
        *(_show_course(name, workload) for name, workload in choose_courses(play.workloads, _MOST_CHARTS)),
        ("Who else is touched", list(_show_touched(plan))),
        ("Nodes", list(_show_nodes(play.nodes, plan.cost))),
        ("What blocks", list(_show_blocked(play.blocked))),
        ("Wrong before, and no worse now", list(play.stuck_before)),
        ("How long pods take", [*_show_start_times(plan.start_times), *_show_stop_times(plan.stop_times)]),
        ("Warnings", list(_show_warnings(plan.warnings))),
        ("What would make it safe", list(show_advice(plan.advice, plan.seeds))),
        ("Plays", list(_show_outcomes(plan))),
    ]
    yield from ((title, lines) for title, lines in sections if lines)


# ---- what changes


def _show_changes(changes: Sequence[ObjectChange]) -> Iterator[str]:
    if not changes:
        yield "nothing"
    nodes = [change for change in changes if change.kind == "Node" and change.action != "change"]
    for change in [change for change in changes if change not in nodes]:
        yield f"{change.kind} {change.name}: {describe_action(change)}"
        yield from (f"  {format_field(field)}" for field in change.fields[:_MOST_FIELDS])
        if len(change.fields) > _MOST_FIELDS:
            yield f"  … and {len(change.fields) - _MOST_FIELDS} fields more; -o json has them"
    for action in dict.fromkeys(change.action for change in nodes):
        names = [change.name for change in nodes if change.action == action]
        yield f"{count(len(names), 'node')} {_plural(_ACTIONS[action], len(names))}: {name_some(names)}"


def describe_action(change: ObjectChange) -> str:
    """What becomes of an object: `is created`; `starts a rollout: …`."""
    rollout = change.rollout.text if change.rollout is not None else ""
    return "; ".join(filter(None, (_ACTIONS.get(change.action), rollout))) or "changes"


def _plural(text: str, number: int) -> str:
    return text if number == 1 else f"are{text.removeprefix('is')}"


def format_field(field: FieldChange) -> str:
    """`spec.replicas: 3 → 5`; `+` and `-` where one side is not there."""
    if field.before is msgspec.UNSET:
        return f"+ {field.path}: {_format_value(field.after)}"
    if field.after is msgspec.UNSET:
        return f"- {field.path}: {_format_value(field.before)}"
    return f"{field.path}: {_format_value(field.before)} → {_format_value(field.after)}"


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


# ---- what happens


def choose_courses(workloads: dict[str, WorkloadForecast], most: int) -> list[tuple[str, WorkloadForecast]]:
    """Those that the change is about, else those that lose most."""
    own = [(name, workload) for name, workload in workloads.items() if len(workload.course) > 1]
    others = sorted(
        ((name, workload) for name, workload in workloads.items() if workload.available_before is not None),
        key=lambda entry: (-_count_lost(entry[1]), entry[0]),
    )
    return (own or others)[:most]


def _count_lost(workload: WorkloadForecast) -> int:
    return min(workload.available_before or 0, workload.replicas) - workload.min_available


def _show_course(name: str, workload: WorkloadForecast) -> tuple[str, list[str]]:
    return describe_course(name, workload), list(draw_course(workload))


def describe_course(name: str, workload: WorkloadForecast) -> str:
    """The title of a chart."""
    before = workload.replicas_before
    wanted = f"{before} → {workload.replicas}" if before not in (None, workload.replicas) else f"{workload.replicas}"
    least = f", {workload.min_available} available at least" if workload.available_before is not None else ""
    return f"{name} over time: {wanted} wanted{least}"


def _show_touched(plan: Plan) -> Iterator[str]:
    touched = plan.shown.touched
    by_fate: dict[tuple[str, str], list[DisruptedPod]] = {}
    for pod in touched.disrupted:
        by_fate.setdefault((pod.workload or f"pod {pod.pod}", pod.cause), []).append(pod)
    for (workload, cause), pods in list(by_fate.items())[:_MOST_ROWS]:
        number = f"{count(len(pods), 'pod')} " if pods[0].workload else ""
        yield f"{workload}: {number}{cause}, from {name_some(sorted({pod.node for pod in pods}))}"
    if len(by_fate) > _MOST_ROWS:
        yield f"… and pods of {len(by_fate) - _MOST_ROWS} workloads more; -o json has them"
    for name in touched.starved[:_MOST_ROWS]:
        forecast = plan.shown.workloads.get(name)
        numbers = f" with {forecast.available} of {forecast.replicas} available" if forecast is not None else ""
        yield f"{name} is left short{numbers}"
    for budget in touched.budgets[:_MOST_ROWS]:
        said = (
            f"is broken: {budget.min_healthy} healthy at the worst, and it asks for {budget.desired_healthy}"
            if budget.is_broken
            else f"is used up meanwhile: it allowed {count(budget.allowed_before, 'eviction')} before, then none"
        )
        yield f"budget {budget.name} {said}"
    yield from touched.refused_evictions[:_MOST_ROWS]


def _show_nodes(nodes: NodeForecast, cost: Cost | None) -> Iterator[str]:
    if nodes.most > max(nodes.before, nodes.after):
        yield f"{nodes.before} before, {nodes.most} at most, {nodes.after} after"
    elif nodes.before != nodes.after:
        yield f"{nodes.before} before, {nodes.after} after"
    for word, names in (("added", nodes.added), ("taken away", nodes.removed), ("left empty", nodes.freed)):
        if names:
            yield f"{count(len(names), 'node')} {word}: {name_some(names)}"
    if nodes.needed:
        yield f"missing: {describe_nodes(nodes.needed)}"
    if cost is not None:
        yield format_cost(cost)


def format_cost(cost: Cost) -> str:
    """`$1,195 per month → $1,335`, and by whose prices."""
    change = "unchanged" if cost.after == cost.before else f"→ ${cost.after:,.0f}"
    notes = [
        *(["list prices; --prices FILE has yours"] if cost.is_list_price else []),
        *([f"{count(cost.unknown, 'node')} without a known price"] if cost.unknown else []),
    ]
    return f"${cost.before:,.0f} per month {change}" + (f" ({', '.join(notes)})" if notes else "")


def _show_blocked(blocked: Sequence[BlockedPod]) -> Iterator[str]:
    for pod in blocked[:_MOST_ROWS]:
        more = f" and {count(pod.others, 'pod')} more of {pod.workload}" if pod.others else ""
        yield f"pod {pod.pod}{more}:"
        for reason in pod.reasons[:_MOST_ROWS]:
            rest = reason.nodes - len(reason.examples)
            names = ", ".join(reason.examples) + (f" and {rest:,} more" if rest > 0 else "")
            yield f"  {names}: {reason.plugin}:"
            yield f"    {reason.detail or reason.reason}"
        if not pod.reasons:
            yield f"  {pod.message}"


def _show_start_times(times: dict[str, StartTime]) -> Iterator[str]:
    unknown = [name for name, time in times.items() if time.source == "unknown"]
    for name, time in list(times.items())[:_MOST_ROWS]:
        if time.source != "unknown":
            yield f"{name}: {format_seconds(time.seconds)} from its node to ready; {_format_source(time)}"
    if unknown:
        yield f"{name_some(unknown)}: not known, taken as at once. --start-seconds deploy/NAME=SECONDS says it."


def _format_source(time: StartTime) -> str:
    match time.source:
        case "given":
            return "as --start-seconds says"
        case "probe":
            return "its probes wait so long"
    slowest = f", the slowest {format_seconds(time.slowest_seconds)}" if time.slowest_seconds > time.seconds else ""
    return f"as {count(time.pods, 'pod')} took{slowest}. What a new image takes is not known."


def _show_stop_times(times: dict[str, StopTime]) -> Iterator[str]:
    for name, time in list(times.items())[:_MOST_ROWS]:
        if time.source != "unknown":
            yield f"{name}: {format_seconds(time.seconds)} to stop; {_format_stop_source(time)}"
    unknown = {name: time.limit_seconds for name, time in times.items() if time.source == "unknown"}
    limits = [limit for limit in unknown.values() if limit is not None]
    if unknown:
        most = f", though {format_seconds(max(limits))} are allowed" if limits else ""
        yield f"{name_some(list(unknown))}: to stop, not known: taken as at once{most}. --stop-seconds says it."


def _format_stop_source(time: StopTime) -> str:
    match time.source:
        case "given":
            return "as --stop-seconds says"
        case "hook":
            return "its preStop hook sleeps so long, and what comes after it is not known"
        case "stopping":
            return f"{count(time.pods, 'pod')} had been stopping for so long, and had not stopped"
    slowest = f", the slowest {format_seconds(time.slowest_seconds)}" if time.slowest_seconds > time.seconds else ""
    return f"as {count(time.pods, 'pod')} took{slowest}"


def _show_warnings(warnings: Sequence[PlanWarning]) -> Iterator[str]:
    for warning in warnings:
        yield f"{warning.subject}: {warning.path.removeprefix('$.')}:"
        yield from wrap_text(f"{warning.text} {warning.fix}", "  ")


def _show_outcomes(plan: Plan) -> Iterator[str]:
    for outcome in plan.outcomes:
        yield f"{len(outcome.seeds)} of {plan.seeds}: {describe_outcome(outcome)}"
        if plan.replay:
            yield f"  {plan.replay} {outcome.seeds[0]}"


def describe_outcome(outcome: Outcome) -> str:
    subjects = ", ".join(dict.fromkeys(problem.subject for problem in outcome.problems if problem.subject))
    slowest = (
        f", {format_seconds(outcome.slowest_seconds)} at most"
        if format_seconds(outcome.slowest_seconds) != format_seconds(outcome.seconds)
        else ""
    )
    match outcome.kind:
        case "completes":
            return f"completes {format_about(outcome.seconds)}{slowest}"
        case "degrades":
            return f"completes {format_about(outcome.seconds)}{slowest}; degrades: {subjects}"
        case "needs-nodes":
            return f"needs nodes: {subjects}"
    return f"never ends: {subjects}" if subjects else "never ends"
