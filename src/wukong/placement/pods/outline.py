"""A pod without what no patch of a policy depends on: pods of which the same is left get the same patch. Pure.

Most of what an author writes is only added to: a toleration of his own decides nothing about ours, unless both are of
one taint. So of such lists it counts that they are there, and of required node terms how many and of which parts. Where
the author and the policy speak of the same label or taint, or a rule of the policy is a choice that is multiplied with
his terms, all of it counts. Called by replies.admission, for pods that are in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from wukong.placement.compile import Plan
from wukong.placement.node_terms import PARTS
from wukong.placement.pods.rules import ON_DEMAND_TERM, SPOT_TERMS, SPOT_TOLERATIONS, compile_pod_rules
from wukong.placement.vm.affinity import PREFERRED, REQUIRED
from wukong.ports import Document

_TERMS = "nodeSelectorTerms"
_MOST_KEPT = 4096


class Mentions(NamedTuple):
    """What a policy may say about nodes, to any pod."""

    labels: frozenset[str]  # and fields
    taints: frozenset[str]
    has_choice: bool  # a required rule with alternatives


def shorten_pod(pod: Document, plan: Plan) -> Document:
    """What counts of a pod. It is no pod any more: a list of which the entries do not count is `true`."""
    mentions = list_mentions(plan)
    spec: Document = {name: value for name, value in pod["spec"].items() if name != "nodeSelector"}
    tolerations = spec.get("tolerations")
    if tolerations and mentions.taints.isdisjoint(map(_key_of, tolerations)):
        spec["tolerations"] = True
    affinity = spec.get("affinity") or {}
    if nodes := affinity.get("nodeAffinity"):
        spec["affinity"] = {**affinity, "nodeAffinity": _shorten_node_affinity(nodes, mentions)}
    return {**pod, "spec": spec}


@lru_cache(maxsize=_MOST_KEPT)
def list_mentions(plan: Plan) -> Mentions:
    rules = compile_pod_rules(plan)
    choices = [choice.alternatives for choice in rules.required]
    if plan.strategy == "spot-only" or plan.waits_for_spot:
        choices.append(SPOT_TERMS)
    wishes = [wish["preference"] for wish in rules.preferred]
    terms = [ON_DEMAND_TERM, *SPOT_TERMS, *wishes, *(term for choice in choices for term in choice)]
    return Mentions(
        frozenset(key for term in terms for key in _list_keys(term)),
        frozenset(map(_key_of, (*SPOT_TOLERATIONS, *rules.tolerations))),
        any(len(choice) > 1 for choice in choices),
    )


def _shorten_node_affinity(nodes: Document, mentions: Mentions) -> Document:
    shortened = dict(nodes)
    wishes, required = nodes.get(PREFERRED), nodes.get(REQUIRED) or {}
    if wishes and _is_disjoint((wish.get("preference") or {} for wish in wishes), mentions):
        shortened[PREFERRED] = True
    terms = required.get(_TERMS)
    if terms and not mentions.has_choice and _is_disjoint(terms, mentions):
        parts = [{part: bool(entries) or entries for part, entries in term.items()} for term in terms]
        shortened[REQUIRED] = {**required, _TERMS: parts}
    return shortened


def _is_disjoint(terms: Iterable[Document], mentions: Mentions) -> bool:
    return all(mentions.labels.isdisjoint(_list_keys(term)) for term in terms)


def _list_keys(term: Document) -> list[str]:
    """The labels and fields that a node selector term is about."""
    return [_key_of(entry) for part in PARTS for entry in term.get(part) or ()]


def _key_of(entry: Any) -> str:
    """Of a toleration or an expression, which may be null."""
    return (entry or {}).get("key") or ""
