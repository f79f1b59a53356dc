"""Made-up policies, and nodes they can tell apart; the same seed makes the same ones. Beside random_cluster.py."""

from __future__ import annotations

from random import Random

from live import random_cluster
from live.random_cluster import APPS, GPU, NAMESPACES, RACK, ZONE, Manifest, a_taint
from wukong.api.policy_parts import STRATEGIES
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.prices import PRICE_LABEL


def mixed_nodes(rng: Random, count: int, now: float) -> list[Manifest]:
    """Of random_cluster, some of them spot, priced, about to leave."""
    made = random_cluster.random_nodes(rng, count, now)
    for node in made:
        meta = node["metadata"]
        meta["labels"] |= rng.choice([{OWN_LABEL: "spot"}, {OWN_LABEL: "spot"}, {OWN_LABEL: "on-demand"}, {}])
        meta["labels"] |= rng.choice([{}, {PRICE_LABEL: "0.4"}, {PRICE_LABEL: "0.9"}, {PRICE_LABEL: "2.5"}])
        if rng.random() < 0.1:
            meta["annotations"] = {**meta["annotations"], NOTICE: "soon"}
        if rng.random() < 0.1:
            taint = a_taint("karpenter.sh/disrupted", "NoSchedule")
            node["spec"]["taints"] = [*node["spec"]["taints"], taint]
    return made


def random_policies(rng: Random, count: int) -> list[Manifest]:
    """A third of them the whole cluster's; one is the default."""
    made = [a_policy(rng, f"p{number:02d}") for number in range(count)]
    default = {"kind": "ClusterPlacementPolicy", "metadata": {"name": "default"}, "spec": a_spec(rng)}
    return [*made, default]


def a_policy(rng: Random, name: str) -> Manifest:
    spec = a_spec(rng)
    labels = {"app": rng.choice(APPS), **({"v": rng.choice("12")} if rng.random() < 0.4 else {})}
    spec["selector"] = {"matchLabels": labels}
    if rng.random() < 0.3:
        wider = rng.choice([{}, {"namespaceSelector": {"matchLabels": {"env": "a"}}}])
        return {"kind": "ClusterPlacementPolicy", "metadata": {"name": name}, "spec": spec | wider}
    meta = {"name": name, "namespace": rng.choice([*NAMESPACES])}
    return {"kind": "PlacementPolicy", "metadata": meta, "spec": spec}


def a_spec(rng: Random) -> Manifest:
    spec: Manifest = {"mode": rng.choice(["Enforce"] * 5 + ["Observe"])}
    if rng.random() < 0.8:
        spec["capacity"] = {"strategy": rng.choice(STRATEGIES)}
    affinity: Manifest = {}
    if rng.random() < 0.3:
        affinity["requiredResources"] = [rng.choice(FLOORS)]
    if rng.random() < 0.3:
        affinity["preferredCPU"] = {"weight": rng.randint(1, 100), "threshold": "70%"}
    policy: Manifest = {"rules": [a_rule(rng) for _ in range(rng.choice([0, 1, 1, 2, 3]))]}
    if rng.random() < 0.2:
        policy["priority"] = rng.choice([100, 1000])
    return {**spec, "scheduling": {"resourceAffinity": affinity, "schedulingPolicy": policy}}


def a_rule(rng: Random) -> Manifest:
    kind = rng.choice(["score", "score", "filter", "prioritize"])
    name, config = rng.choice(FILTERS if kind == "filter" else SCORES)
    return {"name": name, "type": kind, "config": config} | ({"weight": rng.randint(1, 100)} if kind == "score" else {})


FLOORS = [
    {"resourceType": "cpu", "minAvailable": "5"},
    {"resourceType": "memory", "minAvailable": "12Gi"},
    {"resourceType": "storage", "minAvailable": "20Gi"},
    {"resourceType": "gpu", "minAvailable": "2"},
    {"resourceType": GPU, "minAvailable": 1},
]
_NOT_IN_A = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}
SCORES: list[tuple[str, Manifest]] = [
    ("cost-aware", {"costFactor": 0.3}),
    ("cost-aware", {"costFactor": 1}),
    ("label-match", {"matchLabels": {RACK: "r1"}}),
    ("label-match", _NOT_IN_A),
    ("spot-risk", {}),
    ("load-aware", {}),
]
FILTERS: list[tuple[str, Manifest]] = [("cost-aware", {"maxPerHour": 1}), ("label-match", _NOT_IN_A)]
