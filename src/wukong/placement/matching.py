"""Which policy holds for a pod: of those that select it the most specific, then the first by name; else the default.

A policy of the pod's namespace is more specific than one of the cluster, and of two of a kind the one whose selectors
ask for more. Called by replies.extender.verbs and `wukong explain`. A policy with problems selects no pod.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.placement import DEFAULT, ClusterPlacementPolicy, ClusterPlacementPolicySpec
from wukong.api.resources import Key, key_of
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan, Policy, compile_policy
from wukong.placement.rule import Rules
from wukong.placement.slices import Slices, finish
from wukong.semantics.selectors import Selector, compile_selector, selects

Labels = Mapping[str, str]
NO_POLICY = "no policy"  # the name of the plan that holds where there is none
MOST_NAMED = 3  # of policies just as specific
_MOST_KNOWN = 4096  # pods, by namespace and labels, of which the answer is kept
_MOST_LABELS = 32  # that selectors ask about; a pod with more is looked up each time, or it would fill the memory
_PER_SLICE = 64  # policies compared with a pod at a time
_OF_CLUSTER = ""  # the namespace of policies that belong to none
_NO_KEYS: Mapping[str, int] = {}


class Match(NamedTuple):
    plan: Plan
    others: tuple[str, ...] = ()  # policies just as specific that came later by name: the first three
    more: int = 0  # how many there are beyond those named
    observed: Plan | None = None  # what a policy in mode Observe wants beside a Wukong, whose plan is enforced

    def describe_others(self) -> str:
        """`PlacementPolicy shop/b, PlacementPolicy shop/c`, followed by ` and 7 more` if there are."""
        return ", ".join(self.others) + (f" and {self.more:,} more" if self.more else "")


class _Candidate(NamedTuple):
    rank: tuple[bool, int, str]  # sorts the most specific first, then by name
    selector: Selector
    namespaces: Selector
    plan: Plan


class Policies:
    """All policies, compiled. A change of one costs what that one costs: it is compiled, and pods it cannot select keep
    their answers. `namespaces` gives the labels of a namespace."""

    def __init__(
        self,
        policies: Iterable[Policy],
        rules: Rules,
        default_plan: Plan,
        namespaces: Mapping[str, Labels],
        gpu_names: Sequence[str] = GPU_NAMES,
    ) -> None:
        self.default_plan = self._built_in_plan = default_plan
        self._rules, self._gpu_names = rules, gpu_names
        self._namespaces = dict(namespaces)
        self._by_key: dict[tuple[bool, Key], _Candidate] = {}
        self._candidates: dict[str, list[_Candidate]] = {}  # by namespace, in order
        self._label_keys: dict[str, Counter[str]] = {}  # by namespace: those that selectors of its policies ask about
        self._known: dict[str, dict[frozenset[tuple[str, str]], Match]] = {}  # by namespace and such labels
        self._known_count = 0
        for policy in policies:
            self.put(policy)

    # ---- changes

    def put(self, policy: Policy) -> Plan | None:
        """A policy came, or has another spec. Returns the plan it had."""
        key, is_of_cluster = key_of(policy), isinstance(policy, ClusterPlacementPolicy)
        old_plan = self.remove(key, is_of_cluster=is_of_cluster)
        try:
            plan = compile_policy(policy, self._rules, self._gpu_names)
        except InputError:
            return old_plan  # reported by the `policy` controller
        if is_of_cluster and key.name == DEFAULT:
            self.default_plan = plan
            return old_plan
        candidate = _Candidate(rank_of(policy), *_selectors_of(policy), plan)
        insort(self._candidates.setdefault(key.namespace, []), candidate, key=_rank_of)
        self._label_keys.setdefault(key.namespace, Counter()).update(_label_keys_of(candidate))
        self._by_key[is_of_cluster, key] = candidate
        return old_plan

    def remove(self, key: Key, *, is_of_cluster: bool) -> Plan | None:
        """A policy is gone. Returns the plan it had."""
        self._forget(key.namespace)
        if is_of_cluster and key.name == DEFAULT:
            old_plan, self.default_plan = self.default_plan, self._built_in_plan
            return old_plan
        candidate = self._by_key.pop((is_of_cluster, key), None)
        if candidate is None:
            return None
        candidates = self._candidates[key.namespace]
        del candidates[bisect_left(candidates, candidate.rank, key=_rank_of)]
        self._label_keys[key.namespace] -= Counter(_label_keys_of(candidate))  # drops what nobody asks about any more
        if not candidates:
            del self._candidates[key.namespace], self._label_keys[key.namespace]
        return candidate.plan

    def put_namespace(self, name: str, labels: Labels | None) -> None:
        """A namespace came, has other labels, or is gone (None)."""
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        self._known_count -= len(self._known.pop(name, ()))

    def count_known(self) -> int:
        """How many answers are kept."""
        return sum(map(len, self._known.values()))

    def _forget(self, namespace: str) -> None:
        """Forget the answers about pods that a policy of this namespace may select."""
        if namespace == _OF_CLUSTER:
            self._known.clear()
            self._known_count = 0
        else:
            self._known_count -= len(self._known.pop(namespace, ()))

    # ---- questions

    def find(self, pod: Pod) -> Match:
        """The policy that holds for this pod. Pods that no selector tells apart are looked up once."""
        return finish(self.find_in_slices(pod))

    def find_in_slices(self, pod: Pod) -> Slices[Match]:
        """The same. What changes between two slices does not count."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        asked, asked_everywhere = self._label_keys.get(namespace, _NO_KEYS), self._label_keys.get(_OF_CLUSTER, _NO_KEYS)
        key = frozenset(label for label in labels.items() if label[0] in asked or label[0] in asked_everywhere)
        if len(key) > _MOST_LABELS:
            return (yield from self._find(pod))
        known = self._known.get(namespace)
        match = None if known is None else known.get(key)
        if match is not None:
            return match
        if self._known_count >= _MOST_KNOWN:
            self._forget(_OF_CLUSTER)
        known = self._known.setdefault(namespace, {})
        match = yield from self._find(pod)
        if self._known.get(namespace) is known and key not in known:  # else something changed meanwhile
            known[key] = match
            self._known_count += 1
        return match

    def list_others(self, pod: Pod) -> list[str]:
        """Every policy just as specific as the one that holds."""
        return [candidate.plan.name for candidate in finish(self._find_best(pod))[1:]]

    def _find(self, pod: Pod) -> Slices[Match]:
        best = yield from self._find_best(pod)
        if not best:
            return Match(self.default_plan)
        others = tuple(candidate.plan.name for candidate in islice(best, 1, 1 + MOST_NAMED))
        return Match(best[0].plan, others, len(best) - 1 - len(others))

    def _find_best(self, pod: Pod) -> Slices[list[_Candidate]]:
        """The most specific of those that select the pod, by name."""
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        namespace_labels = self._namespaces.get(namespace, {})
        # Copies: policies may come and go between two slices.
        lists = [tuple(self._candidates.get(place, ())) for place in dict.fromkeys((namespace, _OF_CLUSTER))]
        for candidates in lists:
            best: list[_Candidate] = []
            for number, candidate in enumerate(candidates, 1):
                if best and candidate.rank[:2] != best[0].rank[:2]:
                    break
                if selects(candidate.selector, labels) and selects(candidate.namespaces, namespace_labels):
                    best.append(candidate)
                if number % _PER_SLICE == 0:
                    yield
            if best:
                return best
        return []


def rank_of(policy: Policy) -> tuple[bool, int, str]:
    """Sorts the most specific policy first: of the namespace, then who asks for more, then by name."""
    selector, namespaces = _selectors_of(policy)
    return isinstance(policy, ClusterPlacementPolicy), -len(selector) - len(namespaces), policy.metadata.name


def _selectors_of(policy: Policy) -> tuple[Selector, Selector]:
    """Of pods, and of namespaces."""
    spec = policy.spec
    namespaces = spec.namespace_selector if isinstance(spec, ClusterPlacementPolicySpec) else None
    return compile_selector(spec.selector) or (), compile_selector(namespaces) or ()


def _rank_of(candidate: _Candidate) -> tuple[bool, int, str]:
    return candidate.rank


def _label_keys_of(candidate: _Candidate) -> set[str]:
    """The labels of pods that its selector asks about."""
    return {key for key, _, _ in candidate.selector}
