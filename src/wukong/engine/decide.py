"""Deciding about one pod in full: feasible nodes, every plugin's points, reasons, message, preemption.

Slower than place.py, which gives no reasons; both read the same view, so they never disagree.
"""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import ALL, Mask
from wukong.engine.decision import Decision, Preemption, Refusal, format_histogram
from wukong.engine.plugin import Load
from wukong.engine.plugins.node_affinity import CONFLICT, NOT_NAMED, NodeAffinity
from wukong.engine.preempt import NOT_HELPFUL, Attempt, preempt
from wukong.engine.ties import FIRST_BY_NAME, Ties
from wukong.engine.view import View

NO_NODES = "no nodes available to schedule pods"


def decide(view: View, ties: Ties = FIRST_BY_NAME) -> Decision:
    """What kube-scheduler would do with this pod now. Changes nothing. `ties` choose among equal preemptions."""
    view.sync()
    names = [row.name for row in view.snapshot.rows]
    rows = np.flatnonzero(view.feasible).tolist()
    if not rows:
        return _decide_unschedulable(view, ties)
    refusals = find_refusals(view)
    feasible = tuple(names[row] for row in rows)
    if len(rows) == 1:  # nothing to compare: kube-scheduler does not score
        return Decision(feasible=feasible, refusals=refusals)
    if view.scoring_error:
        return Decision(feasible=feasible, refusals=refusals, error=view.scoring_error)
    points = {name: values[rows] for name, values in view.compute_points().items()}
    return Decision(
        feasible=feasible,
        scores=points,
        final=tuple(int(total) for total in view.total[rows]),
        refusals=refusals,
    )


def find_refusals(view: View) -> dict[str, Refusal]:
    """Node → the first plugin that refuses it, in the profile's order."""
    snapshot, load = view.snapshot, Load(view.snapshot.load)
    undecided: Mask = np.ones(len(snapshot.rows), dtype=np.bool_)
    refusals: dict[str, Refusal] = {}
    named = NodeAffinity.named_nodes(view) if "NodeAffinity" in view.profile.filters else None
    if named is not None:
        for number, row in enumerate(snapshot.rows):
            if row.name not in named:
                refusals[row.name] = Refusal("NodeAffinity", (NOT_NAMED.text,), is_final=True)
                undecided[number] = False
    for plugin, part in view.filters:
        failing = part.failing(ALL, load)
        refused = np.logical_or.reduce([mask for _, mask in failing]) & undecided
        if not refused.any():
            continue
        final = part.find_unresolvable(ALL, load)
        for number in np.flatnonzero(refused).tolist():
            reasons = tuple(reason.text for reason, mask in failing if mask[number])
            refusals[snapshot.rows[number].name] = Refusal(plugin, reasons, bool(final[number]))
        undecided &= ~refused
    return refusals


def _decide_unschedulable(view: View, ties: Ties) -> Decision:
    count = len(view.snapshot.rows)
    if not count:
        return Decision(message=NO_NODES)
    named = NodeAffinity.named_nodes(view) if "NodeAffinity" in view.profile.filters else None
    if named is not None and not named:
        return _decide_before_nodes(view, count, "NodeAffinity", CONFLICT)
    for plugin, part in view.filters:
        if problem := part.find_problem():
            return _decide_before_nodes(view, count, plugin, problem)
    refusals = find_refusals(view)
    reasons = format_histogram(reason for refusal in refusals.values() for reason in refusal.reasons)
    attempt = preempt(view, refusals, ties) if view.profile.has_preemption else None
    preemption = attempt.preemption if attempt else None
    tail = _format_preemption(view, preemption) if preemption else _format_post_filter(view, attempt, count)
    return Decision(
        refusals=refusals,
        message=f"0/{count} nodes are available: {reasons}.{tail}",
        preemption=preemption,
    )


def _format_preemption(view: View, preemption: Preemption) -> str:
    if not view.profile.version.preemption_message:
        return ""
    node, victims = preemption.node, len(preemption.victims)
    return f" preemption: found a potential placement for pod on node {node}, preempting {victims} victims"


def _decide_before_nodes(view: View, count: int, plugin: str, problem: str) -> Decision:
    """A plugin refused the pod before any node was looked at (PreFilter).

    DynamicResources then fails for want of its PreFilter state, so preemption is not tried.
    """
    refusals = {row.name: Refusal(plugin, (problem,), is_final=True) for row in view.snapshot.rows}
    if view.profile.has_resource_claims:
        tail = " not found"
    else:
        tail = _format_post_filter(view, Attempt() if view.profile.has_preemption else None, count)
    return Decision(refusals=refusals, message=f"0/{count} nodes are available: {problem}.{tail}")


def _format_post_filter(view: View, attempt: Attempt | None, count: int) -> str:
    """The messages of the PostFilter plugins, which run after no node was feasible."""
    messages = ["no new claims to deallocate"] if view.profile.has_claims_message else []
    if attempt is not None:
        messages.append(f"preemption: {attempt.refusal or _format_not_helpful(attempt, count)}")
    return f" {', '.join(messages)}" if messages else ""


def _format_not_helpful(attempt: Attempt, count: int) -> str:
    reasons = [reason for node in attempt.reasons.values() for reason in node]
    reasons += [NOT_HELPFUL] * (count - len(attempt.reasons))
    return f"0/{count} nodes are available: {format_histogram(reasons)}."
