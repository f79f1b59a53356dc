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
# A StatefulSet and two DaemonSets that are updated, with surge and without, scaled, and lose a node.
SETS = """
nodes:
  - {namePrefix: n, count: 4, capacity: {cpu: 4}}
manifests:
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 3
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}, annotations: {sim.novasphere.dev/ready-seconds: "3"}}
        spec: {containers: [{name: db, image: "db:1", resources: {requests: {cpu: 500m}}}]}
  - apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: agent}
    spec:
      selector: {matchLabels: {app: agent}}
      updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
      template:
        metadata: {labels: {app: agent}, annotations: {sim.novasphere.dev/ready-seconds: "3"}}
        spec: {containers: [{name: agent, image: "agent:1", resources: {requests: {cpu: 500m}}}]}
  - apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: probe}
    spec:
      selector: {matchLabels: {app: probe}}
      updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
      template:
        metadata: {labels: {app: probe}, annotations: {sim.novasphere.dev/ready-seconds: "3"}}
        spec: {containers: [{name: probe, image: "probe:1", resources: {requests: {cpu: 100m}}}]}
timeline:
  - {at: 30s, patch: {kind: StatefulSet, name: db, patch: {spec: {template: {metadata: {labels: {v: "2"}}}}}}}
  - {at: 30s, patch: {kind: DaemonSet, name: agent, patch: {spec: {template: {metadata: {labels: {v: "2"}}}}}}}
  - {at: 30s, patch: {kind: DaemonSet, name: probe, patch: {spec: {template: {metadata: {labels: {v: "2"}}}}}}}
  - {at: 90s, scale: {kind: StatefulSet, name: db, replicas: 5}}
  - {at: 130s, scale: {kind: StatefulSet, name: db, replicas: 2}}
  - {at: 150s, kill: n3}
  - {at: 160s, patch: {kind: DaemonSet, name: agent, patch: {spec: {template: {metadata: {labels: {v: "3"}}}}}}}
until: 2h
"""
# Wukongs that are scaled, changed, deleted and made again, a machine that is deleted, and nodes that go.
MACHINES = """
components: [vm]
nodes:
  - {namePrefix: n, count: 4, capacity: {cpu: 8, memory: 16Gi}}
manifests:
  - apiVersion: vm.novasphere.dev/v1alpha1
    kind: Wukong
    metadata: {name: web}
    spec: &web
      replicas: 3
      restartPolicy: WhenSafe
      disks: [{name: root, containerDisk: {image: "registry.example/web:1"}}]
      vmTemplate: {spec: {template: {metadata: {annotations: {sim.novasphere.dev/stop-seconds: "20"}}}}}
  - &db
    apiVersion: vm.novasphere.dev/v1alpha1
    kind: Wukong
    metadata: {name: db}
    spec: {disks: [{name: root, containerDisk: {image: "registry.example/db:1"}}]}
timeline:
  - {at: 20s, drain: n1}
  - {at: 40s, delete: {kind: VirtualMachine, name: web-0}}
  - at: 60s
    apply:
      apiVersion: vm.novasphere.dev/v1alpha1
      kind: Wukong
      metadata: {name: web}
      spec: {<<: *web, replicas: 2}
  - {at: 70s, uncordon: n1}
  - {at: 80s, delete: {kind: Wukong, name: db}}
  - {at: 130s, kill: n2}
  - at: 200s
    apply:
      apiVersion: vm.novasphere.dev/v1alpha1
      kind: Wukong
      metadata: {name: web}
      spec: {<<: *web, replicas: 2, labels: {tier: front}}
until: 2h
"""
# Two spot nodes get notice: a Deployment, one beside an autoscaler whose least size people change meanwhile, and a
# StatefulSet whose pod no other node takes, so that it goes in the last moment.
SPOT = """
components: [spot]
nodes:
  - {namePrefix: spot-, count: 2, spot: true, capacity: {cpu: 4}}
  - {namePrefix: od-, count: 2, spot: false, capacity: {cpu: 4}}
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}, annotations: {sim.novasphere.dev/ready-seconds: "10"}}
        spec:
          containers: [{name: web, image: "web:1", resources: {requests: {cpu: 250m}}}]
          affinity: &spot-first
            nodeAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
                - weight: 100
                  preference: {matchExpressions: [{key: node.kubernetes.io/capacity, operator: In, values: [spot]}]}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: api}
    spec:
      replicas: 2
      selector: {matchLabels: {app: api}}
      template:
        metadata: {labels: {app: api}, annotations: {sim.novasphere.dev/ready-seconds: "20"}}
        spec:
          containers: [{name: api, image: "api:1", resources: {requests: {cpu: 250m}}}]
          affinity: *spot-first
  - apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: api}
    spec:
      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
      minReplicas: 2
      maxReplicas: 9
      metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 1
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec:
          containers: [{name: db, image: "db:1", resources: {requests: {cpu: 500m}}}]
          nodeSelector: {node.kubernetes.io/capacity: spot}
timeline:
  - at: 60s
    patch:
      kind: Node
      name: spot-1
      type: merge
      patch: &notice {metadata: {annotations: {placement.novasphere.dev/notice: 2m}}}
  - {at: 60s, patch: {kind: Node, name: spot-2, type: merge, patch: *notice}}
  - {at: 65s, patch: {kind: HorizontalPodAutoscaler, name: api, type: merge, patch: {spec: {minReplicas: 5}}}}
  - {at: 180s, kill: spot-1}
  - {at: 180s, kill: spot-2}
  - {at: 200s, scale: {kind: StatefulSet, name: db, replicas: 0}}
until: 20m
"""


def the_scenario(faults: Mapping[str, float], text: str = SCENARIO) -> Scenario:
    """With these types of faults, at these rates, until a while after the timeline's end."""
    scenario = read_scenario(text)
    scenario.timeline += [TimelineEntry("0s", fault=Fault(name, "90s", rate)) for name, rate in faults.items()]
    return scenario


@contextmanager
def plant(where: object, name: str, bug: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, bug)
        yield


def hunt(faults: Mapping[str, float], text: str = SCENARIO) -> tuple[int, list[str]]:
    """The first seed that fails, and why; fails itself if none does."""
    scenario = the_scenario(faults, text)
    for seed in range(1, MOST_SEEDS + 1):
        reasons = play_seed(scenario, seed, ()).reasons
        if reasons:
            return seed, reasons
    raise AssertionError(f"nothing found in {MOST_SEEDS} seeds with {', '.join(faults) or 'no faults'}")


def find_failing_seeds(faults: Mapping[str, float], until: int, text: str = SCENARIO) -> dict[int, list[str]]:
    """The seeds up to this one that fail, and why."""
    scenario = the_scenario(faults, text)
    results = [play_seed(scenario, seed, ()) for seed in range(1, until + 1)]
    return {result.seed: result.reasons for result in results if result.reasons}
