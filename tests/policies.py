"""Builders of policies, plans and fleets: `a_fleet(spot("s"), cpu={"s": 40})`, `a_plan(strategy="spot-first")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from builders import a_node, a_pod
from wukong.api.core import Node, Pod
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.vm import Wukong
from wukong.engine.arrays import Index
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.compile import Plan, compile_policy
from wukong.placement.fleet import USED, Fleet, Latencies, Nodes, read_facts
from wukong.placement.judge import Judge, Judgement
from wukong.placement.prices import PRICE_LABEL, Prices
from wukong.placement.rule import Rules
from wukong.placement.rules import BUILT_IN

Known = Mapping[str, float]  # node → percent used
DISRUPTED = "karpenter.sh/disrupted:NoSchedule"


def spot(
    name: str = "spot", *, labels: Mapping[str, str] | None = None, price: float | None = None, **more: Any
) -> Node:
    return steady(name, labels={OWN_LABEL: "spot", **(labels or {})}, price=price, **more)


def steady(
    name: str = "steady", *, labels: Mapping[str, str] | None = None, price: float | None = None, **more: Any
) -> Node:
    """A node on demand."""
    priced = {} if price is None else {PRICE_LABEL: str(price)}
    return a_node(name, labels={**priced, **(labels or {})}, **more)


def a_fleet(
    *nodes: Node,
    cpu: Known | None = None,
    memory: Known | None = None,
    storage: Known | None = None,
    free: Mapping[str, Sequence[int]] | None = None,
    latencies: Latencies | None = None,
    prices: Prices | None = None,
) -> Fleet:
    """Nodes in the order given; `free` in the same order, for the resources somebody has."""
    facts = Nodes([read_facts(node, prices or Prices()) for node in nodes])
    usage = np.full((len(USED), len(nodes)), np.nan)
    for line, known in enumerate((cpu, memory, storage)):
        for name, percent in (known or {}).items():
            usage[line, facts.row_of[name]] = percent
    columns = {name: np.array(amounts, dtype=np.int64) for name, amounts in (free or {}).items()}
    return Fleet(facts, usage, columns.get, latencies)


def a_rule(name: str, type_: str = "score", weight: int | None = None, **config: Any) -> dict[str, Any]:
    """A rule as a policy writes it; config fields in camelCase."""
    rule = {"name": name, "type": type_, "config": config}
    return rule if weight is None else {**rule, "weight": weight}


def prefers(weight: int, threshold: str) -> dict[str, Any]:
    return {"weight": weight, "threshold": threshold}


def needs(resource: str, least: str | int) -> dict[str, Any]:
    return {"resourceType": resource, "minAvailable": least}


def a_spec(
    *,
    strategy: str = "",
    mode: str = "",
    selects: Mapping[str, str] | None = None,
    rules: Sequence[Mapping[str, Any]] = (),
    floors: Sequence[Mapping[str, Any]] = (),
    preferred_cpu: Mapping[str, Any] | None = None,
    preferred_memory: Mapping[str, Any] | None = None,
    preferred_storage: Mapping[str, Any] | None = None,
    **policy: Any,
) -> dict[str, Any]:
    """A policy's spec as a document; `policy` is the rest of schedulingPolicy."""
    wishes = {
        "preferredCPU": preferred_cpu,
        "preferredMemory": preferred_memory,
        "preferredStorage": preferred_storage,
        "requiredResources": list(floors),
    }
    spec: dict[str, Any] = {
        "scheduling": {
            "resourceAffinity": {field: wish for field, wish in wishes.items() if wish is not None},
            "schedulingPolicy": {"rules": list(rules), **policy},
        }
    }
    if selects is not None:
        spec["selector"] = {"matchLabels": dict(selects)}
    if strategy:
        spec["capacity"] = {"strategy": strategy}
    if mode:
        spec["mode"] = mode
    return spec


def a_policy(name: str = "web", *, namespace: str = "default", **spec: Any) -> PlacementPolicy:
    return policy_of(a_spec(**spec), name, namespace)


def policy_of(spec: Mapping[str, Any], name: str = "web", namespace: str = "default") -> PlacementPolicy:
    document = {"kind": "PlacementPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return msgspec.convert(document, PlacementPolicy)


def a_cluster_policy(
    name: str = "default", *, namespaces: Mapping[str, str] | None = None, **spec: Any
) -> ClusterPlacementPolicy:
    wider = {} if namespaces is None else {"namespaceSelector": {"matchLabels": dict(namespaces)}}
    document = {"kind": "ClusterPlacementPolicy", "metadata": {"name": name}, "spec": {**a_spec(**spec), **wider}}
    return msgspec.convert(document, ClusterPlacementPolicy)


def a_wukong(name: str = "db", *, namespace: str = "default", gpus: Sequence[str] = (), **spec: Any) -> Wukong:
    """A Wukong whose scheduling block says what `a_spec` makes of this."""
    scheduling = a_spec(**spec)["scheduling"]
    devices = [{"name": f"gpu-{number}", "deviceName": device} for number, device in enumerate(gpus)]
    document = {
        "kind": "Wukong",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"scheduling": scheduling, "gpus": devices},
    }
    return msgspec.convert(document, Wukong)


def a_plan(*, known: Rules = BUILT_IN, **spec: Any) -> Plan:
    return compile_policy(a_policy(**spec), known)


def all_rows(fleet: Fleet) -> Index:
    return np.arange(fleet.size, dtype=np.intp)


def rows_of(fleet: Fleet, *names: str) -> Index:
    """The rows of these nodes, -1 for one the fleet does not have."""
    return np.array([fleet.row_of.get(name, -1) for name in names], dtype=np.intp)


def judge_nodes(
    plan: Plan, fleet: Fleet, needed: Mapping[str, int] | None = None, judge: Judge | None = None
) -> Judgement:
    return (judge or Judge()).filter(plan, fleet, all_rows(fleet), a_pod(), needed or {}, plan.strategy)


def kept_names(plan: Plan, fleet: Fleet, needed: Mapping[str, int] | None = None) -> list[str]:
    kept = judge_nodes(plan, fleet, needed).kept
    return [name for name, is_kept in zip(fleet.names, kept.tolist(), strict=True) if is_kept]


def scores(plan: Plan, fleet: Fleet, pod: Pod | None = None, judge: Judge | None = None) -> dict[str, int]:
    points = (judge or Judge()).score(plan, fleet, all_rows(fleet), pod or a_pod())
    return dict(zip(fleet.names, points.tolist(), strict=True))
