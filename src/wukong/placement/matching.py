"""Which policy holds for a pod: of those that select it the most specific, then the first by name; else the default.

A policy of the pod's namespace is more specific than one of the cluster, and of two of a kind the one whose selectors
ask for more. Called by replies.extender.verbs and `wukong explain`. A policy with problems selects no pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.placement import DEFAULT, ClusterPlacementPolicy, ClusterPlacementPolicySpec
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan, Policy, compile_policy
from wukong.placement.rule import Rules
from wukong.semantics.selectors import Selector, compile_selector, selects

Labels = Mapping[str, str]
_MOST_KNOWN = 4096


class Match(NamedTuple):
    plan: Plan
    others: tuple[str, ...] = ()  # policies just as specific that came later by name


class _Candidate(NamedTuple):
    rank: tuple[bool, int, str]  # sorts the most specific first
    namespace: str  # "" for any
    selector: Selector
    namespaces: Selector
    plan: Plan


class Policies:
    """Built anew whenever a policy changes. `namespaces` gives the labels of a namespace."""

    def __init__(
        self,
        policies: Iterable[Policy],
        rules: Rules,
        default_plan: Plan,
        namespaces: Mapping[str, Labels],
        gpu_names: Sequence[str] = GPU_NAMES,
    ) -> None:
        self.default_plan = default_plan
        self._namespaces = namespaces
        self._candidates: list[_Candidate] = []
        self._known: dict[tuple[str, frozenset[tuple[str, str]]], Match] = {}
        for policy in policies:
            self._add(policy, rules, gpu_names)
        self._candidates.sort(key=lambda candidate: candidate.rank)

    def find(self, pod: Pod) -> Match:
        """The policy that holds for this pod. Pods with the same labels and namespace are looked up once."""
        key = pod.metadata.namespace, frozenset(pod.metadata.labels.items())
        match = self._known.get(key)
        if match is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            match = self._known[key] = self._find(pod)
        return match

    def _add(self, policy: Policy, rules: Rules, gpu_names: Sequence[str]) -> None:
        try:
            plan = compile_policy(policy, rules, gpu_names)
        except InputError:
            return  # reported by the `policy` controller
        is_of_cluster = isinstance(policy, ClusterPlacementPolicy)
        if is_of_cluster and policy.metadata.name == DEFAULT:
            self.default_plan = plan
            return
        spec = policy.spec
        selector = compile_selector(spec.selector) or ()
        namespace_selector = spec.namespace_selector if isinstance(spec, ClusterPlacementPolicySpec) else None
        namespaces = compile_selector(namespace_selector) or ()
        rank = is_of_cluster, -len(selector) - len(namespaces), policy.metadata.name
        self._candidates.append(_Candidate(rank, policy.metadata.namespace, selector, namespaces, plan))

    def _find(self, pod: Pod) -> Match:
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        namespace_labels = self._namespaces.get(namespace, {})
        matches = [
            candidate
            for candidate in self._candidates
            if candidate.namespace in ("", namespace)
            and selects(candidate.selector, labels)
            and selects(candidate.namespaces, namespace_labels)
        ]
        if not matches:
            return Match(self.default_plan)
        first = matches[0]
        others = tuple(match.plan.name for match in matches[1:] if match.rank[:2] == first.rank[:2])
        return Match(first.plan, others)
