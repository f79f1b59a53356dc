"""A preferred separation where no place is left to be apart in: it changes nothing, and adds no node either.

Two cases are certain. Pods that may run in one domain only are never apart. And versions that should be apart
(mismatchLabelKeys) share nodes at once where every node with room has a pod of the workload already: the dedicated
group of a workload is full of the old version when the new one comes.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.core import PodAffinityTerm
from wukong.api.profile import default_profile
from wukong.engine import Scheduler
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, TouchedWorkload
from wukong.semantics.pod_affinity import compile_pod_term

CODE = "preferred-without-room"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for workload in situation.workloads:
        for path, term in workload.list_pod_terms("podAntiAffinity"):
            if ".preferred" not in path or not situation.selects_own_pods(workload, term):
                continue
            domains = _list_domains(situation, workload, term)
            if len(domains) <= 1 and (workload.replicas or 0) > 1:
                text = (
                    f"its pods may run in {_count(domains, term)} only: all {workload.replicas} share it, "
                    "whatever is preferred."
                )
                fix = "Add nodes elsewhere that its pods may run on, or leave the rule out."
            elif term.mismatch_label_keys and not _list_free_domains(situation, workload, term):
                text = (
                    f"every {term.topology_key} with room for its pods has one already: new pods share with old ones, "
                    "as without the rule, and no autoscaler adds a node for a preference."
                )
                fix = "Add a node before the rollout, or make the rule required where nodes are added when pods wait."
            else:
                continue
            yield PlanWarning(code=CODE, subject=workload.subject, path=path, text=text, fix=fix)


def _list_domains(situation: Situation, workload: TouchedWorkload, term: PodAffinityTerm) -> set[str]:
    labels = (node.metadata.labels.get(term.topology_key) for node in situation.possible_nodes(workload))
    return {label for label in labels if label is not None}


def _list_free_domains(situation: Situation, workload: TouchedWorkload, term: PodAffinityTerm) -> set[str]:
    """Domains with room for a pod of the workload, and without any that the term selects."""
    if not situation.bound_labels(compile_pod_term(term, workload.key.namespace), term.topology_key):
        return {"any"}  # a new workload: nobody is there to be apart from
    filters_only = msgspec.structs.replace(default_profile(), scores=(), zero_scores=())
    scheduler = Scheduler(situation.state.snapshot.fork(), filters_only)
    view = scheduler.compile(scheduler.snapshot.table.intern(workload.pod))
    view.sync()
    with_room = {row.name for row, fits in zip(scheduler.snapshot.rows, view.feasible.tolist(), strict=True) if fits}
    nodes = [node for node in situation.possible_nodes(workload) if node.metadata.name in with_room]
    free = {node.metadata.labels[term.topology_key] for node in nodes if term.topology_key in node.metadata.labels}
    return free - situation.bound_labels(compile_pod_term(term, workload.key.namespace), term.topology_key)


def _count(domains: set[str], term: PodAffinityTerm) -> str:
    return f"one {term.topology_key} ({min(domains)})" if domains else f"no domain of {term.topology_key}"
