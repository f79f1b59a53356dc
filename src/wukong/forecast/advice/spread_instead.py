"""A topology spread constraint instead of required anti-affinity: as even as possible, and never too few domains."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question, StuckWorkload
from wukong.forecast.advice.rules import (
    TEMPLATE_HASH,
    describe_term,
    find_own_terms,
    list_constraints,
    list_required,
    replace_required,
)
from wukong.ports import Document

CODE = "spread-instead"
_FIRST_MINOR = 27  # of the API server: matchLabelKeys of spread constraints are on by default from there on


def propose(question: Question) -> Iterator[Candidate]:
    for workload in question.blocked_workloads:
        terms = list_required(workload)
        own = [index for index in find_own_terms(workload) if _is_plain(workload, terms[index])]
        taken = {entry.get("topologyKey") for entry in list_constraints(workload)}
        own = [index for index in own if terms[index]["topologyKey"] not in taken]
        if not own or len({terms[index]["topologyKey"] for index in own}) < len(own):
            continue  # a key may be spread over once
        has_keys = workload.kind == "Deployment" and (question.minor is None or question.minor >= _FIRST_MINOR)
        constraints = [*list_constraints(workload), *(_spread(terms[index], has_keys=has_keys) for index in own)]
        kept = [term for index, term in enumerate(terms) if index not in own]
        changed = replace_required(workload, kept, topologySpreadConstraints=constraints)
        yield Candidate(
            code=CODE,
            text=f"Spread {workload.subject} evenly (topologySpreadConstraints, maxSkew 1) instead of the "
            f"{' and the '.join(describe_term(terms[index]) for index in own)}.",
            loss=Loss.SEPARATION,
            gives_up="Where there are more pods than domains, some share one; none has two more than another.",
            patches=(build_patch(workload.document, changed),),
        )


def _is_plain(workload: StuckWorkload, term: Document) -> bool:
    """Whether a spread constraint can say the same: it looks at its own namespace, and not at other versions."""
    elsewhere = term.get("namespaces") not in (None, [], [workload.key.namespace]) or term.get("namespaceSelector")
    return not elsewhere and not term.get("mismatchLabelKeys") and bool(term.get("labelSelector"))


def _spread(term: Document, *, has_keys: bool) -> Document:
    keys = list(dict.fromkeys([*(term.get("matchLabelKeys") or ()), *([TEMPLATE_HASH] if has_keys else [])]))
    constraint = {
        "maxSkew": 1,
        "topologyKey": term["topologyKey"],
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": term["labelSelector"],
    }
    return {**constraint, "matchLabelKeys": keys} if keys else constraint
