"""Answers made from what is remembered are those that working everything out anew would give.

One webhook lives through random changes of policies, namespaces, classes, quotas, nodes and pods, and answers for
random pods that differ in what may and what may not matter. Beside it stands an oracle that remembers nothing: it
compiles every policy, counts every pod, and builds the whole pod, for every question.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import msgspec
import pytest

from policies import spot, steady
from random_pods import CLASSES, random_pod, random_pod_policy
from replies.test_admission_pods import Webhook, a_quota, for_classes, patched
from wukong.api.core import Namespace, Node, Pod, PriorityClass
from wukong.api.kinds import RESOURCE_QUOTAS
from wukong.api.meta import ObjectMeta
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.quota import ResourceQuota
from wukong.placement.capacity import is_spot
from wukong.placement.compile import Plan, Policy
from wukong.placement.matching import NO_POLICY, Policies
from wukong.placement.pods import MARK, SPOT, CapacityCounts, build_pod, read_mark, split
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document
from wukong.replies.admission.capacity_index import group_of
from wukong.replies.admission.decisions import FORGET_SECONDS, NONCE, Group
from wukong.replies.admission.quotas import adds_cross_namespace_affinity, find_counted_pods

STEPS = 80
SPACES = ("shop", "lab")
ACROSS = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["data"]}


class Oracle:
    """What the answer to a question about a pod must be, worked out from the mirror's objects alone."""

    def __init__(self, webhook: Webhook) -> None:
        self.webhook, self.state = webhook, webhook.state
        self.coming: dict[str, tuple[Group, str, float]] = {}  # by nonce: decisions whose pods have not been seen

    def expect(self, pod: Document) -> tuple[str, Document]:
        """The result, and the pod as it shall be, but for the nonce."""
        subject = msgspec.convert(pod, Pod)
        plan = self._find_plan(subject)
        if plan.name == NO_POLICY:
            return "no-policy", pod
        mark = read_mark(subject.metadata.annotations)
        capacity = mark.capacity if mark is not None and mark.policy == plan.name else split(plan, self._count(subject))
        classes = {entry.metadata.name: entry for entry in self.state.all(PriorityClass)}
        quotas = [quota for quota in self._quotas() if quota.metadata.namespace == subject.metadata.namespace]
        counted = find_counted_pods(quotas)
        change = build_pod(pod, plan, capacity, classes, is_counted=counted.counts_class)
        if counted.has_cross_namespace and adds_cross_namespace_affinity(pod, change.document):
            return "skipped", pod
        if change.document == pod:
            return "skipped" if change.skipped else "unchanged", pod
        return "patched", change.document

    def _find_plan(self, pod: Pod) -> Plan:
        policies: list[Policy] = [*self.state.all(PlacementPolicy), *self.state.all(ClusterPlacementPolicy)]
        namespaces = {entry.metadata.name: entry.metadata.labels for entry in self.state.all(Namespace)}
        return Policies(policies, BUILT_IN, Plan(name=NO_POLICY), namespaces).find(pod).plan

    def _count(self, pod: Pod) -> CapacityCounts:
        group, capacities = group_of(pod.metadata.namespace, pod.metadata), []
        nodes = {node.metadata.name: node for node in self.state.all(Node)}
        for other in self.state.all(Pod):
            if group_of(other.metadata.namespace, other.metadata) == group:
                mark, node = read_mark(other.metadata.annotations), nodes.get(other.spec.node_name)
                decided = mark.capacity if mark is not None else ""
                capacities.append(decided if node is None else SPOT if is_spot(node.metadata.labels) else "on-demand")
        for of_group, capacity, at in self.coming.values():
            if of_group == group and self.webhook.now - at < FORGET_SECONDS:
                capacities.append(capacity)
        return CapacityCounts(capacities.count("on-demand"), capacities.count(SPOT))

    def _quotas(self) -> list[ResourceQuota]:
        quotas = self.state.objects.get(RESOURCE_QUOTAS.group_kind, {}).values()
        return [quota for quota in quotas if isinstance(quota, ResourceQuota)]


class Life:
    """A webhook, the oracle beside it, and random things that happen."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"reuse {seed}")
        self.webhook = Webhook(*(a_class(name) for name in CLASSES), *(a_namespace(name, {}) for name in SPACES))
        self.oracle = Oracle(self.webhook)
        self.results: list[str] = []
        for _ in range(6):
            self._set_policy()

    def step(self) -> None:
        happenings = [self._ask] * 8 + [self._set_policy] * 3 + [self._remove_policy, self._label_namespace]
        self.rng.choice([*happenings, self._set_node, self._wait, self._set_class, self._set_quota])()

    def _ask(self) -> None:
        """About a pod, in every namespace; and again, as it is by then, as API servers do."""
        pod = self._make_pod()
        for namespace in SPACES:
            pod["metadata"]["namespace"] = namespace
            after = self._ask_about(copy.deepcopy(pod))
            if self.rng.random() < 0.3:
                self._ask_about(after)

    def _ask_about(self, pod: Document) -> Document:
        """The pod after it, without a nonce."""
        result, expected = self.oracle.expect(pod)
        reply = self.webhook.review(pod)
        after = patched(pod, reply)
        nonce = (after["metadata"].get("annotations") or {}).pop(NONCE, None)
        assert reply.result == result
        assert after == expected
        self.results.append(result)
        mark = read_mark(after["metadata"].get("annotations")) if result == "patched" else None
        assert (nonce is not None) == bool(mark is not None and mark.capacity)
        if nonce is None or mark is None:
            return after
        subject = msgspec.convert(pod, Pod)
        group = group_of(subject.metadata.namespace, subject.metadata)
        self.oracle.coming[nonce] = group, mark.capacity, self.webhook.now
        if self.rng.random() < 0.6:
            seen = copy.deepcopy(after)
            seen["metadata"]["annotations"][NONCE] = nonce
            self.webhook.see(seen, f"seen-{nonce}", self.rng.choice(("", "n-0", "n-1", "n-gone")))
            del self.oracle.coming[nonce]
        return after

    def _make_pod(self) -> Document:
        """One of few templates, with something of its own that may matter or not."""
        rng = self.rng
        pod: Document = copy.deepcopy(random_pod(rng.randrange(6)))
        meta, spec = pod["metadata"], pod["spec"]
        labels: dict[str, Any] = {
            "statefulset.kubernetes.io/pod-name": f"web-{rng.randrange(3)}",
            "tier": rng.choice(("front", "back", "not a value")),
            "-not a key": "x",
            "pod-template-hash": "5d8f",
        }
        annotations = {"note": f"{rng.randrange(3)}", MARK: self._make_mark(), "empty": ""}
        rest: dict[str, Any] = {
            "hostname": f"h-{rng.randrange(3)}",
            "nodeSelector": {"disk": rng.choice(("ssd", "hdd"))},
        }
        rest |= {"tolerations": [{"key": "x", "operator": "Exists"}], "priorityClassName": rng.choice(("", "high"))}
        meta["labels"] |= {name: value for name, value in labels.items() if rng.random() < 0.15}
        if chosen := {name: value for name, value in annotations.items() if rng.random() < 0.15}:
            meta["annotations"] = {**meta.get("annotations", {}), **chosen}
        spec |= {name: value for name, value in rest.items() if rng.random() < 0.2}
        for owner in meta.get("ownerReferences", ()):
            owner |= {"name": f"owner-{rng.randrange(3)}", "uid": f"u-{rng.randrange(2)}"}
        return pod

    def _make_mark(self) -> str:
        policy = f"PlacementPolicy shop/policy-{self.rng.randrange(6)}"
        return self.rng.choice((json.dumps({"policy": policy, "generation": 1, "capacity": "spot"}), "nonsense"))

    def _set_policy(self) -> None:
        policy: Document = copy.deepcopy(random_pod_policy(self.rng.randrange(40)))
        policy["metadata"]["name"] = f"policy-{self.rng.randrange(6)}"
        selector = policy["spec"]["selector"]
        selector["matchLabels"] |= self.rng.choice(({}, {}, {"tier": "front"}))
        if self.rng.random() < 0.2:
            selector["matchExpressions"] = [{"key": "statefulset.kubernetes.io/pod-name", "operator": "DoesNotExist"}]
        if self.rng.random() < 0.2:
            policy["spec"].setdefault("scheduling", {})["podAffinity"] = {"required": [ACROSS]}
        if self.rng.random() < 0.5:
            del policy["metadata"]["namespace"]
            policy["spec"] |= self.rng.choice(({}, {"namespaceSelector": {"matchLabels": {"team": "a"}}}))
            self.webhook.put(msgspec.convert(policy, ClusterPlacementPolicy))
        else:
            policy["metadata"]["namespace"] = self.rng.choice(SPACES)
            self.webhook.put(msgspec.convert(policy, PlacementPolicy))

    def _remove_policy(self) -> None:
        policies = [*self.webhook.state.all(PlacementPolicy), *self.webhook.state.all(ClusterPlacementPolicy)]
        if policies:
            self.webhook.state.apply("DELETED", self.rng.choice(policies))

    def _label_namespace(self) -> None:
        self.webhook.put(a_namespace(self.rng.choice(SPACES), self.rng.choice(({}, {"team": "a"}))))

    def _set_node(self) -> None:
        self.webhook.put(self.rng.choice((spot, steady))(f"n-{self.rng.randrange(2)}"))

    def _set_class(self) -> None:
        name = self.rng.choice(list(CLASSES))
        existing = [entry for entry in self.webhook.state.all(PriorityClass) if entry.metadata.name == name]
        if existing:
            self.webhook.state.apply("DELETED", existing[0])
        else:
            self.webhook.put(a_class(name))

    def _set_quota(self) -> None:
        every = {"scopes": ["PriorityClass"]}
        some: dict[str, Any] = {"scopeSelector": for_classes("In", "high", "placement-1000")}
        across = {"scopes": ["CrossNamespacePodAffinity"]}
        self.webhook.put(a_quota(self.rng.choice(SPACES), **self.rng.choice((every, some, across, {}))))

    def _wait(self) -> None:
        self.webhook.now += self.rng.choice((1.0, 6.0))


def a_class(name: str) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=CLASSES[name], global_default=name == "usual")


def a_namespace(name: str, labels: dict[str, str]) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=dict(labels)))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_remembered_changes_no_answer(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    assert life.results.count("patched") > 10, "there was something to get wrong"
