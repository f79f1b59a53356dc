"""A random change by seed: a few nodes, a workload that rests on them, and something that is done to it.

    change = draw_change(7)
    change.nodes        whole Node objects
    change.before       applied first, until everything rests
    change.documents    applied then, or
    change.drained      the node that is drained then
    change.more_nodes   come with it, where somebody follows advice

Drawn are replicas (1 to 8), nodes (one fewer than replicas, as many, one more), zones, the room on a node, the rule,
the strategy, a budget and what happens. Everything of a change is in a namespace and on nodes of its own, so that many
of them are played side by side on one cluster. Knows no code under test.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from wukong.ports import Document

HOSTNAME, ZONE, CASE = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/case"
HASH = "pod-template-hash"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POD_MILLI = 100  # cpu of a pod, which is a slot of a node
START_SECONDS = 3  # of a pod: nothing is to depend on which of two controllers is faster by milliseconds
DEADLINE_SECONDS = 14  # until a Deployment says that it makes no progress
ANNOTATIONS = {"sim.novasphere.dev/start-seconds": str(START_SECONDS)}

STRATEGIES: dict[str, Document] = {
    "25%/25%": {},
    "surge 1": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    "unavailable 1": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    "1/1": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
    "surge 100%": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
    "recreate": {"type": "Recreate"},
}
RULES = (
    "none",
    "apart by host",
    "apart by zone",
    "apart within a version",
    "versions apart",
    "versions preferred apart",
    "preferred apart by host",
    "spread over hosts",
    "spread over zones",
    "spread within a version",
)
BUDGETS: dict[str, Document] = {
    "none": {},
    "one may go": {"maxUnavailable": 1},
    "half must stay": {"minAvailable": "50%"},
    "none may go": {"maxUnavailable": 0},
}
ACTIONS = ("image", "image", "image", "image", "add rule", "add rule", "change rule", "scale", "drain")


class RandomChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is there before, and what is done to it. `text` says it in a line, for tables."""

    seed: int
    text: str
    nodes: list[Document]
    before: list[Document]
    documents: list[Document]
    drained: str = ""
    more_nodes: list[Document] = []  # that come with the change
    suffix: str = ""  # of all names, where the same is made more than once

    @property
    def namespace(self) -> str:
        return f"{name_case(self.seed)}{self.suffix}"


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn. `slots` are how many pods fit on a node."""

    seed: int
    kind: str = "Deployment"
    replicas: int = 3
    nodes: int = 3
    zones: int = 0  # 0: nodes do not say their zone
    slots: int = 10
    strategy: str = "25%/25%"
    rule: str = "none"
    rule_before: str = "none"
    budget: str = "none"
    action: str = "image"
    replicas_after: int = 3


def name_case(seed: int) -> str:
    return f"case-{seed}"


def draw_change(seed: int) -> RandomChange:
    """The same seed gives the same change, in every process."""
    return build_change(draw_shape(seed))


def draw_shape(seed: int) -> Shape:
    random = Random(f"plan {seed}")
    replicas = random.randint(1, 8)
    action = random.choice(ACTIONS)
    rule = random.choice(RULES)
    before = {"add rule": "none", "change rule": random.choice(RULES)}.get(action, rule)
    return Shape(
        seed=seed,
        kind=random.choice(("Deployment",) * 6 + ("StatefulSet",)),
        replicas=replicas,
        nodes=max(1, replicas + random.choice((-1, 0, 0, 1))),
        zones=random.choice((0, 1, 2, 3)),
        slots=random.choice((1, 2, 3, 10, 10)),
        strategy=random.choice(sorted(STRATEGIES)),
        rule=rule,
        rule_before=before,
        budget=random.choice(sorted(BUDGETS)),
        action=action,
        replicas_after=max(1, replicas + random.choice((-1, 1, 2))) if action == "scale" else replicas,
    )


def build_change(shape: Shape) -> RandomChange:
    before = [_build_namespace(shape), *_build_budget(shape), _build_workload(shape, is_before=True)]
    drained = f"{name_case(shape.seed)}-n1" if shape.action == "drain" else ""
    return RandomChange(
        seed=shape.seed,
        text=describe(shape),
        nodes=[_build_node(shape, number) for number in range(1, shape.nodes + 1)],
        before=before,
        documents=[] if drained else [_build_workload(shape, is_before=False)],
        drained=drained,
    )


def describe(shape: Shape) -> str:
    zones = f" in {shape.zones} zones" if shape.zones else ""
    rule = shape.rule if shape.rule == shape.rule_before else f"{shape.rule_before} → {shape.rule}"
    action = f"scale to {shape.replicas_after}" if shape.action == "scale" else shape.action
    size = f"{shape.replicas} on {shape.nodes} nodes{zones} of {shape.slots}"
    return f"{shape.kind} {size}; {shape.strategy}; {rule}; budget {shape.budget}; {action}"


def _build_namespace(shape: Shape) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name_case(shape.seed)}}


def _build_node(shape: Shape, number: int) -> Document:
    name = f"{name_case(shape.seed)}-n{number}"
    labels = {HOSTNAME: name, CASE: name_case(shape.seed)}
    if shape.zones:
        labels[ZONE] = f"{name_case(shape.seed)}-z{number % shape.zones}"
    capacity = {"cpu": f"{shape.slots * POD_MILLI}m", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _build_budget(shape: Shape) -> list[Document]:
    spec = BUDGETS[shape.budget]
    meta = {"name": "web", "namespace": name_case(shape.seed)}
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": {**selector, **spec}}
    return [budget] if spec else []


def _build_workload(shape: Shape, *, is_before: bool) -> Document:
    namespace, labels = name_case(shape.seed), {"app": "web"}
    image = "web:1" if is_before or shape.action == "scale" else "web:2"
    container = {"name": "web", "image": image, "resources": {"requests": {"cpu": f"{POD_MILLI}m"}}}
    pod: Document = {"containers": [container], "nodeSelector": {CASE: namespace}}
    pod |= _build_rule(shape.rule_before if is_before else shape.rule)
    spec: Document = {
        "replicas": shape.replicas if is_before else shape.replicas_after,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": dict(ANNOTATIONS)}, "spec": pod},
    }
    if shape.kind == "Deployment":
        spec["progressDeadlineSeconds"] = DEADLINE_SECONDS
        spec |= {"strategy": STRATEGIES[shape.strategy]} if STRATEGIES[shape.strategy] else {}
    if shape.kind == "StatefulSet":
        spec["serviceName"] = "web"
    return {
        "apiVersion": "apps/v1",
        "kind": shape.kind,
        "metadata": {"name": "web", "namespace": namespace},
        "spec": spec,
    }


def _build_rule(rule: str) -> Document:
    """The part of a pod's spec that says it."""
    selector = {"matchLabels": {"app": "web"}}

    def term(key: str, **more: Any) -> Document:
        return {"topologyKey": key, "labelSelector": selector, **more}

    def apart(entry: Document) -> Document:
        return {"affinity": {"podAntiAffinity": {REQUIRED: [entry]}}}

    def rather_apart(entry: Document) -> Document:
        return {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": entry}]}}}

    def spread(entry: Document) -> Document:
        constraint = {**entry, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return {"topologySpreadConstraints": [constraint]}

    built: dict[str, Document] = {
        "none": {},
        "apart by host": apart(term(HOSTNAME)),
        "apart by zone": apart(term(ZONE)),
        "apart within a version": apart(term(HOSTNAME, matchLabelKeys=[HASH])),
        "versions apart": apart(term(HOSTNAME, mismatchLabelKeys=[HASH])),
        "versions preferred apart": rather_apart(term(HOSTNAME, mismatchLabelKeys=[HASH])),
        "preferred apart by host": rather_apart(term(HOSTNAME)),
        "spread over hosts": spread(term(HOSTNAME)),
        "spread over zones": spread(term(ZONE)),
        "spread within a version": spread(term(HOSTNAME, matchLabelKeys=[HASH])),
    }
    return built[rule]
