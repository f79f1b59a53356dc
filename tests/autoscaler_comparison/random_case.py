"""A case by seed: a Deployment, how its pods are and what they use, and an autoscaler; then other usage.

Nothing in it depends on how many seconds pass: windows and periods are none, or longer than a comparison takes.
"""

from __future__ import annotations

from random import Random

import msgspec

from wukong.ports import Document

LABELS = {"app": "web"}
_NEVER = 3600  # seconds


class PodPlan(msgspec.Struct, frozen=True):
    """`age` and `ready_age` in seconds, None for a pod that is pending; `usage` by container, None for no metrics."""

    age: float | None
    ready_age: float
    is_ready: bool
    usage: dict[str, Document] | None


class Case(msgspec.Struct, frozen=True):
    seed: int
    deployment: Document
    autoscaler: Document
    pods: list[PodPlan]
    later_usage: list[dict[str, Document] | None]

    @property
    def selector(self) -> dict[str, str]:
        return {**LABELS, "case": str(self.seed)}


def draw_case(seed: int) -> Case:
    random = Random(f"autoscaler {seed}")
    names = ["main", "side"][: random.choice((1, 1, 2))]
    replicas = random.randint(1, 6)
    labels = {**LABELS, "case": str(seed)}
    containers = [_draw_container(random, name) for name in names]
    pod_spec = {"containers": containers, "schedulerName": "nobody"}
    level = random.choice((0.1, 0.5, 0.9, 1.0, 1.1, 1.5, 3.0))
    pods = [_draw_pod(random, names, level) for _ in range(replicas)]
    other_level = random.choice((0.1, 0.5, 1.0, 1.5, 3.0))
    return Case(
        seed,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec},
            },
        },
        _draw_autoscaler(random, names),
        pods,
        [_draw_usage(random, names, other_level) if pod.usage is not None else None for pod in pods],
    )


def make_uniform(case: Case) -> Case:
    """The same case with pods all alike: where some go, which of them is chance."""
    usage = next((pod.usage for pod in case.pods if pod.usage is not None), None)
    count = len(case.pods)
    later_usage = next((entry for entry in case.later_usage if entry is not None), None)
    pod = PodPlan(4000.0, 3900.0, True, usage)
    return msgspec.structs.replace(case, pods=[pod] * count, later_usage=[later_usage] * count)


def _draw_container(random: Random, name: str) -> Document:
    requests = {"cpu": random.choice(("100m", "250m", "1")), "memory": random.choice(("64Mi", "100M"))}
    if random.random() < 0.06:
        requests.pop("cpu")
    return {"name": name, "image": "app:1", "resources": {"requests": requests}}


def _draw_usage(random: Random, names: list[str], level: float) -> dict[str, Document]:
    usage: dict[str, Document] = {}
    for name in names:
        share = level * random.uniform(0.8, 1.2)
        usage[name] = {"cpu": f"{round(150 * share)}m", "memory": f"{round(70_000 * share)}Ki"}
        if random.random() < 0.03:
            usage[name].pop("memory")
    return usage


def _draw_pod(random: Random, names: list[str], level: float) -> PodPlan:
    kind = random.choice(("old",) * 6 + ("new", "unready", "new unready", "pending", "missing"))
    usage = None if kind == "missing" else _draw_usage(random, names, level)
    match kind:
        case "new":
            return PodPlan(60.0, 45.0, True, usage)
        case "unready":  # it was ready once, or never
            return PodPlan(4000.0, random.choice((3990.0, 2000.0)), False, usage)
        case "new unready":
            return PodPlan(60.0, 60.0, False, usage)
        case "pending":
            return PodPlan(None, 0.0, False, None)
    return PodPlan(4000.0, 3900.0, True, usage)


def _draw_autoscaler(random: Random, names: list[str]) -> Document:
    metrics = [_draw_metric(random, names) for _ in range(random.choice((1, 1, 2)))]
    least = random.choice((1, 1, 2, 3))
    spec: Document = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": least,
        "maxReplicas": least + random.choice((0, 2, 6, 20)),
        "metrics": metrics,
    }
    if random.random() < 0.02:
        spec["scaleTargetRef"]["name"] = "other"
    if random.random() < 0.5:
        spec["behavior"] = {name: _draw_rules(random) for name in ("scaleUp", "scaleDown")}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def _draw_metric(random: Random, names: list[str]) -> Document:
    resource = random.choice(("cpu", "cpu", "memory"))
    target: Document = {"type": "Utilization", "averageUtilization": random.choice((30, 50, 80, 120))}
    if random.random() < 0.35:
        amount = random.choice(("100m", "200m")) if resource == "cpu" else random.choice(("50Mi", "80M"))
        target = {"type": "AverageValue", "averageValue": amount}
    if random.random() < 0.25:
        container = random.choice((*names, *names, "nobody"))
        source = {"name": resource, "container": container, "target": target}
        return {"type": "ContainerResource", "containerResource": source}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _draw_rules(random: Random) -> Document:
    policies = [
        {
            "type": random.choice(("Pods", "Percent")),
            "value": random.choice((1, 2, 3, 50, 100)),
            "periodSeconds": 1800,
        }
        for _ in range(random.choice((1, 2)))
    ]
    rules: Document = {
        "stabilizationWindowSeconds": random.choice((0, 0, _NEVER)),
        "policies": policies,
        "selectPolicy": random.choice(("Max", "Max", "Min", "Disabled")),
    }
    return rules
