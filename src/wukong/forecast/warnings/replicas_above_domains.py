"""More replicas that must be apart than there are domains to be apart in: the rest can never be placed."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import PodAffinityTerm
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, TouchedWorkload

CODE = "replicas-above-domains"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for workload in situation.workloads:
        for path, term, domains in list_separations(situation, workload):
            replicas = workload.replicas or 0
            if replicas > domains:
                there_are = f"there are {domains}" if domains != 1 else "there is 1"
                yield PlanWarning(
                    code=CODE,
                    subject=workload.subject,
                    path=path,
                    text=f"{replicas} replicas must be apart by {term.topology_key}, and {there_are} where its pods "
                    f"may run: {replicas - domains} can never be placed.",
                    fix=f"Ask for at most {domains} replicas, add nodes, or make the rule preferred.",
                )


def list_separations(situation: Situation, workload: TouchedWorkload) -> Iterator[tuple[str, PodAffinityTerm, int]]:
    """Required terms that keep the workload's own pods apart: path, term, in how many domains they may be.

    Left out are terms between versions, and those whose label some possible node lacks: nobody is kept away from that.
    """
    if workload.replicas is None:
        return
    for path, term in workload.list_required_terms("podAntiAffinity"):
        if term.mismatch_label_keys or not situation.selects_own_pods(workload, term):
            continue
        values = [node.metadata.labels.get(term.topology_key) for node in situation.possible_nodes(workload)]
        if None not in values:
            yield path, term, len(set(values))
