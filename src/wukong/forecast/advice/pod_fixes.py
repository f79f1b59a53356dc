"""What `explain` finds for a pod without a node, as patches: tolerate a taint, drop what excludes nodes.

Rules between pods are the business of other candidates. Every change is tried on the cluster as it is stuck before it
is proposed; an uncordoned node is a step, not a patch. A taint of Kubernetes' own is never tolerated: it says that
something is wrong with the node, or that it is being drained.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.core import Node, NodeAffinity, Pod
from wukong.api.profile import default_profile
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.engine import Scheduler
from wukong.engine.pod_changes import PodChange, list_pod_changes
from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question, StuckWorkload, pod_of
from wukong.ports import Document

CODE = "pod-fixes"
_FIELDS = ("tolerations", "nodeSelector", "affinity")
_OWN_TAINT = "node.kubernetes.io/"
_MOST = 4  # of one workload, the smallest first


def propose(question: Question) -> Iterator[Candidate]:
    for workload in question.blocked_workloads:
        changes = sorted(_list_helpful(question, pod_of(workload)), key=lambda change: (change.size, change.sentence))
        for change in changes[:_MOST]:
            yield Candidate(
                code=CODE,
                text=f"{change.sentence[:1].upper()}{change.sentence[1:]}, in the template of {workload.subject}.",
                loss=Loss.DEDICATION,
                gives_up="Its pods may run on nodes that are kept for others."
                if change.kind == "tolerate"
                else "Its pods may run on nodes that were excluded.",
                patches=(build_patch(workload.document, _carry_over(workload, change.pod)),),
            )
    if question.blocked_workloads:
        yield from _uncordon(question)


def _list_helpful(question: Question, pod: Pod) -> Iterator[PodChange]:
    """The changes with which the pod would have a node where nothing more happens."""
    filters_only = msgspec.structs.replace(default_profile(), scores=(), zero_scores=())
    scheduler = Scheduler(question.final.snapshot.fork(), filters_only)
    for change in list_pod_changes(pod, scheduler.snapshot.rows):
        is_ours = _is_about_nodes(pod, change.pod) and _OWN_TAINT not in change.sentence
        if is_ours and scheduler.compile(scheduler.snapshot.table.intern(change.pod)).count_feasible():
            yield change


def _is_about_nodes(before: Pod, after: Pod) -> bool:
    """Whether the change is one of tolerations, nodeSelector or node affinity."""
    parts = [(pod.spec.tolerations, pod.spec.node_selector, _node_affinity_of(pod)) for pod in (before, after)]
    return parts[0] != parts[1]


def _node_affinity_of(pod: Pod) -> NodeAffinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def _carry_over(workload: StuckWorkload, pod: Pod) -> Document:
    """The workload's document with what the change made of its template."""
    before: Document = msgspec.to_builtins(workload.template.spec)
    after: Document = msgspec.to_builtins(pod.spec)
    changed = {name: after.get(name) or None for name in _FIELDS if before.get(name) != after.get(name)}
    return workload.with_pod_spec(**changed)


def _uncordon(question: Question) -> Iterator[Candidate]:
    """One node that somebody cordoned, and not this change."""
    drained = {step.drain or step.cordon for step in question.change.steps}
    cordoned = [node.metadata.name for node in question.final.all(Node) if node.spec.unschedulable]
    for name in [name for name in cordoned if name not in drained][:1]:
        yield Candidate(
            code=CODE,
            text=f"Uncordon node {name}.",
            loss=Loss.DEDICATION,
            gives_up="Whatever it was cordoned for.",
            steps=(TimelineEntry(at="0s", uncordon=name),),
        )
