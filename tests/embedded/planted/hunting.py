"""What the planted bugs share: a small cluster with something of everything, and a hunt for a seed that shows a bug.

A bug is planted by replacing a part of the product while the hunt is on. Without it the same seeds must pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from wukong.app.soak import play_seed
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.format.fields import Fault, TimelineEntry

MOST_SEEDS = 200
SCENARIO = """
nodes:
  - {namePrefix: n, count: 4, capacity: {cpu: 2}}
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers: [{name: web, image: "web:1", resources: {requests: {cpu: 500m}}}]
          affinity:
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web}
    spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
  - apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: old, finalizers: [foregroundDeletion]}
    spec:
      replicas: 1
      selector: {matchLabels: {app: old}}
      template:
        metadata: {labels: {app: old}}
        spec: {containers: [{name: old, image: "old:1"}]}
timeline:
  - {at: 10s, drain: n1}
  - {at: 10s, drain: n2}
  - {at: 20s, uncordon: n1}
  - {at: 25s, uncordon: n2}
  - {at: 30s, scale: {kind: Deployment, name: web, replicas: 4}}
  - {at: 40s, delete: {kind: ReplicaSet, name: old}}
  - {at: 50s, scale: {kind: Deployment, name: web, replicas: 2}}
  - {at: 60s, kill: n3}
until: 2h
"""


def the_scenario(faults: Mapping[str, float]) -> Scenario:
    """With these types of faults, at these rates, until a while after the timeline's end."""
    scenario = read_scenario(SCENARIO)
    scenario.timeline += [TimelineEntry("0s", fault=Fault(name, "90s", rate)) for name, rate in faults.items()]
    return scenario


@contextmanager
def plant(where: object, name: str, bug: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, bug)
        yield


def hunt(faults: Mapping[str, float]) -> tuple[int, list[str]]:
    """The first seed that fails, and why; fails itself if none does."""
    scenario = the_scenario(faults)
    for seed in range(1, MOST_SEEDS + 1):
        reasons = play_seed(scenario, seed, ()).reasons
        if reasons:
            return seed, reasons
    raise AssertionError(f"nothing found in {MOST_SEEDS} seeds with {', '.join(faults) or 'no faults'}")


def find_failing_seeds(faults: Mapping[str, float], until: int) -> dict[int, list[str]]:
    """The seeds up to this one that fail, and why."""
    scenario = the_scenario(faults)
    results = [play_seed(scenario, seed, ()) for seed in range(1, until + 1)]
    return {result.seed: result.reasons for result in results if result.reasons}
