"""A rule preferred instead of required: pods are apart where there is room, and run where there is none, too."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question
from wukong.forecast.advice.rules import (
    describe_term,
    find_own_constraints,
    find_own_terms,
    list_constraints,
    list_required,
    replace_required,
)

CODE = "preferred-rule"
_WEIGHT = 100


def propose(question: Question) -> Iterator[Candidate]:
    for workload in question.blocked_workloads:
        own, terms = find_own_terms(workload), list_required(workload)
        if own:
            kept = [term for index, term in enumerate(terms) if index not in own]
            softened = [{"weight": _WEIGHT, "podAffinityTerm": terms[index]} for index in own]
            yield Candidate(
                code=CODE,
                text=f"Make the {' and the '.join(describe_term(terms[index]) for index in own)} of {workload.subject} "
                "preferred.",
                loss=Loss.SEPARATION,
                gives_up="Where there is no room to be apart, its pods share a domain.",
                patches=(build_patch(workload.document, replace_required(workload, kept, softened)),),
            )
        own, constraints = find_own_constraints(workload), list_constraints(workload)
        if own:
            loose = [
                {**entry, "whenUnsatisfiable": "ScheduleAnyway"} if index in own else entry
                for index, entry in enumerate(constraints)
            ]
            changed = workload.with_pod_spec(topologySpreadConstraints=loose)
            keys = " and ".join(str(constraints[index].get("topologyKey")) for index in own)
            yield Candidate(
                code=CODE,
                text=f"Set whenUnsatisfiable: ScheduleAnyway for the spread of {workload.subject} over {keys}.",
                loss=Loss.SEPARATION,
                gives_up="Where there is no room, its pods are spread less evenly.",
                patches=(build_patch(workload.document, changed),),
            )
