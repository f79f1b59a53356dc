"""matchLabelKeys: [pod-template-hash]: pods are kept apart from those of their own version only.

The smallest change where a rule comes with this rollout: pods end up apart all the same, and old ones do not bar new
ones. Where the old pods have the rule without it they still bar the new ones: then it helps from the next rollout on.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.patches import build_patch
from wukong.forecast.advice.question import Question, StuckWorkload
from wukong.forecast.advice.rules import (
    TEMPLATE_HASH,
    find_own_constraints,
    find_own_terms,
    list_constraints,
    list_required,
    replace_required,
)
from wukong.ports import Document

CODE = "match-label-keys"
_FIRST_MINOR = 31  # of the API server: on by default from there on


def propose(question: Question) -> Iterator[Candidate]:
    for workload in question.blocked_workloads if is_known(question) else ():
        changed = build_document(workload)
        if changed is not None:
            yield Candidate(
                code=CODE,
                text=f"Add matchLabelKeys: [{TEMPLATE_HASH}] to the rules of {workload.subject} that keep its pods "
                "apart: then they are apart from pods of their own version.",
                loss=Loss.NOTHING,
                gives_up="Old and new pods may share a domain while a rollout lasts.",
                patches=(build_patch(workload.document, changed),),
            )


def is_known(question: Question) -> bool:
    """Whether the API server keeps the key; one that does not drops it silently."""
    return question.minor is None or question.minor >= _FIRST_MINOR


def build_document(workload: StuckWorkload) -> Document | None:
    """The workload with the key in every rule about its own pods that lacks it; None if none does."""
    if workload.kind != "Deployment":  # nobody else's pods have such a label
        return None
    terms, constraints = list_required(workload), list_constraints(workload)
    wanted = [index for index in find_own_terms(workload) if lacks_key(terms[index])]
    wanted_constraints = [index for index in find_own_constraints(workload) if lacks_key(constraints[index])]
    if not wanted and not wanted_constraints:
        return None
    changed = [add_key(term) if index in wanted else term for index, term in enumerate(terms)]
    changed_constraints = [
        add_key(entry) if index in wanted_constraints else entry for index, entry in enumerate(constraints)
    ]
    return replace_required(workload, changed, topologySpreadConstraints=changed_constraints or None)


def lacks_key(rule: Document) -> bool:
    named = [*(rule.get("matchLabelKeys") or ()), *(rule.get("mismatchLabelKeys") or ())]
    return TEMPLATE_HASH not in named and bool(rule.get("labelSelector"))


def add_key(rule: Document) -> Document:
    return {**rule, "matchLabelKeys": [*(rule.get("matchLabelKeys") or ()), TEMPLATE_HASH]}
