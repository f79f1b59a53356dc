"""Nodes with the pods on them, at one moment. What script.js draws while the slider is moved looks the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wukong.cli.views.console import count
from wukong.cli.views.report.markup import Html, join, tag
from wukong.forecast.placement_history import NodeHistory, PlacementHistory, PodHistory, PodPhase

_PHASES = {"waiting": "waits for a node", "starting": "starting", "ready": "ready", "stopping": "stopping"}
WAITING = "without a node"


def draw_map(history: PlacementHistory, end: float) -> Html:
    """As it was just before `end`."""
    by_node: dict[str, list[tuple[PodHistory, PodPhase]]] = {}
    for pod in history.pods:
        span = pod.span_at(end)
        if span is not None and span.phase != "gone":
            by_node.setdefault(span.node, []).append((pod, span.phase))
    return join(_draw_all(history.nodes, by_node, end))


def _draw_all(
    nodes: Sequence[NodeHistory], by_node: Mapping[str, list[tuple[PodHistory, PodPhase]]], end: float
) -> Iterator[Html]:
    for node in nodes:
        phase = node.phase_at(end)
        pods = by_node.get(node.name, [])
        if phase == "gone" and not pods:
            continue
        head = tag(
            "div",
            tag("b", node.name),
            tag("span", phase, class_="phase") if phase != "ready" else None,
            tag("small", describe_node(node)),
        )
        rest = tag("span", f"+{node.other_pods:,}", class_="rest", title=f"{node.other_pods:,} pods that stay")
        yield tag(
            "div",
            head,
            _draw_pods(pods, rest if node.other_pods and phase != "gone" else None),
            class_=f"node {phase.replace(' ', '-')}",
        )
    if waiting := by_node.get(""):
        yield tag("div", tag("div", tag("b", WAITING)), _draw_pods(waiting), class_="node unplaced")


def describe_node(node: NodeHistory) -> str:
    return " · ".join(filter(None, (node.instance_type, node.zone)))


def _draw_pods(pods: Sequence[tuple[PodHistory, PodPhase]], rest: Html | None = None) -> Html:
    marks = (
        tag("i", class_=f"pod {pod.version} {phase}", title=f"{pod.name} · {pod.version} · {_PHASES[phase]}")
        for pod, phase in pods
    )
    return tag("div", marks, rest, class_="pods")


def list_legend() -> Html:
    versions = (("new", "new version"), ("old", "old version"), ("other", "another workload"))
    items = [
        *(tag("span", tag("i", class_=f"pod {version} ready"), text) for version, text in versions),
        *(
            tag("span", tag("i", class_=f"pod new {phase}"), text)
            for phase, text in _PHASES.items()
            if phase != "ready"
        ),
    ]
    return tag("p", items, class_="legend")


def describe_scope(history: PlacementHistory) -> str:
    """What a map leaves out, in words."""
    shown = f"Nodes and pods that the change touches: {len(history.nodes):,} and {len(history.pods):,}."
    others = [
        *([count(history.untouched_nodes, "other node")] if history.untouched_nodes else []),
        *([count(history.untouched_pods, "other pod")] if history.untouched_pods else []),
    ]
    omitted = [
        *([count(history.omitted_nodes, "node")] if history.omitted_nodes else []),
        *([count(history.omitted_pods, "pod")] if history.omitted_pods else []),
    ]
    return " ".join(
        [
            shown,
            *(
                [f"Nothing happens to {' and '.join(others)}; +N on a node counts its pods among them."]
                if others
                else []
            ),
            *([f"{' and '.join(omitted)} more are touched, and not drawn: there are too many."] if omitted else []),
        ]
    )
