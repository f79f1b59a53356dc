"""Draws a case: Deployments that need nodes, then one of them grows. Both sides get the same documents."""

from __future__ import annotations

import random

import msgspec

from wukong.ports import Document

CPUS = ("250m", "500m", "1", "1500m", "2", "3")
MEMORIES = (None, "256Mi", "1Gi", "3Gi")
MOST_NODES = 30  # more than any case needs: Karpenter may exceed a limit by what it has asked for a moment ago
MORE_SIZES = ((), (2, 16), (1, 2, 16))  # cpus of the instance types that a case has besides
RULES = ("none", "none", "apart", "spread", "preferred")


class Case(msgspec.Struct, frozen=True):
    seed: int
    sizes: tuple[int, ...]  # cpus of the instance types; their memory is four GiB for each
    deployments: list[Document]
    grows: str  # the Deployment that grows afterwards
    replicas: int

    @property
    def name(self) -> str:
        return f"case-{self.seed}"


def name_type(cpus: int) -> str:
    """Karpenter's kwok provider calls an instance type so."""
    return f"s-{cpus}x-amd64-linux"


def draw_case(seed: int) -> Case:
    chance = random.Random(seed)
    names = [f"d{number}" for number in range(chance.randint(1, 3))]
    deployments = [_draw_deployment(chance, name) for name in names]
    grows = chance.choice(deployments)
    size = chance.choice((4, 8))
    replicas = grows["spec"]["replicas"] + chance.randint(1, 8)
    return Case(
        seed=seed,
        sizes=tuple(sorted((size, *chance.choice(MORE_SIZES)))),
        deployments=deployments,
        grows=grows["metadata"]["name"],
        replicas=replicas,
    )


def _draw_deployment(chance: random.Random, name: str) -> Document:
    requests = {"cpu": chance.choice(CPUS)}
    if memory := chance.choice(MEMORIES):
        requests["memory"] = memory
    spec: Document = {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}]}
    selector = {"matchLabels": {"app": name}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    rule = chance.choice(RULES)
    if rule == "apart":
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif rule == "preferred":
        weighted = {"weight": 100, "podAffinityTerm": term}
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    elif rule == "spread":
        spec["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": chance.randint(1, 4 if rule in ("apart", "spread") else 10),
            "selector": selector,
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }
