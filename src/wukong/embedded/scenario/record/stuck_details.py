"""What the reasons of a stuck story are about: nodes by what keeps a waiting pod off them, budgets that refuse a drain.

Called by recording.py in the end of a story; the reasons themselves stay as Kubernetes words them. Reads the mirror of
the cluster and a fork of its engine snapshot, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.apps import PodDisruptionBudget
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.story import RefusingNodes, StuckDetail
from wukong.embedded.world.objects import Pod
from wukong.engine import Decision, Scheduler, Snapshot
from wukong.engine.explain import group_nodes
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State

MOST_DETAILS = 20  # of a story
_NODES_LOOKED_AT = "0/"  # so the message begins if the scheduler has looked at nodes


def describe_stuck(recorder: Recorder) -> list[StuckDetail]:
    """The details of pods that wait, one for each workload and message, and of refused drains."""
    details = [*_describe_waiting(recorder), *_describe_drains(recorder)]
    return details[:MOST_DETAILS]


def _describe_waiting(recorder: Recorder) -> Iterator[StuckDetail]:
    pods: dict[tuple[str, str], Pod] = {}
    for subject, pod, message in recorder.list_waiting_pods():
        if message.startswith(_NODES_LOOKED_AT):
            pods.setdefault((subject, message), pod)
    if not pods:
        return
    snapshot = recorder.cluster.state.snapshot.fork()
    for (subject, message), pod in list(pods.items())[:MOST_DETAILS]:
        if nodes := _list_refusing_nodes(snapshot, pod):
            yield StuckDetail(subject=subject, pod=pod.key, reason=f"pending: {message}", nodes=nodes)


def _list_refusing_nodes(snapshot: Snapshot, pod: Pod) -> list[RefusingNodes]:
    """Of nodes that only somebody else refuses, such as an extender, nothing is known here."""
    view = Scheduler(snapshot).view_of(pod)
    groups = [group for group in group_nodes(view, Decision()) if not group.is_feasible]
    return [
        RefusingNodes(
            nodes=list(group.nodes),
            count=len(group.nodes),
            reasons=group.list_reasons(),
            refusals={plugin: list(reasons) for plugin, reasons in group.refusals.items()},
            details=[detail.build_document() for detail in group.details],
        )
        for group in sorted(groups, key=lambda group: -len(group.nodes))
    ]


def _describe_drains(recorder: Recorder) -> Iterator[StuckDetail]:
    for subject, pod, error in recorder.list_refused_drains():
        for budget in _list_covering_budgets(recorder.cluster.state, pod):
            reason = f"drain: pod {pod.key}: {error}"
            yield StuckDetail(subject=subject, pod=pod.key, reason=reason, budget=budget.key, text=_describe(budget))


def _describe(budget: PodDisruptionBudget) -> str:
    bounds = {"minAvailable": budget.spec.min_available, "maxUnavailable": budget.spec.max_unavailable}
    limits = ", ".join(f"{name} {value}" for name, value in bounds.items() if value is not None)
    allowed = max(0, budget.status.disruptions_allowed)
    return f"budget {budget.key} ({limits}) lets {allowed} more {'pod' if allowed == 1 else 'pods'} go just now"


def _list_covering_budgets(state: State, pod: Pod) -> list[PodDisruptionBudget]:
    return [
        budget
        for budget in state.all(PodDisruptionBudget)
        if budget.metadata.namespace == pod.metadata.namespace
        and selects(compile_selector(budget.spec.selector), pod.metadata.labels)
    ]
