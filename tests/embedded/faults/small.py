"""A small cluster for the tests of faults: something is always going on in it while they strike."""

from __future__ import annotations

from wukong.app.embedded import play_with
from wukong.embedded.faults import FaultCounts
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.scenario.format.fields import Fault, TimelineEntry

SCENARIO = """
nodes:
  - {namePrefix: n, count: 5, spot: true}
extender: true
components: [ledger]
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 2
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: db, image: "db:1"}]}
timeline:
  - at: 10s
    patch: {kind: Deployment, name: web, patch: {spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}}
  - {at: 30s, drain: n1}
  - {at: 40s, scale: {kind: Deployment, name: web, replicas: 5}}
  - {at: 60s, uncordon: n1}
  - {at: 90s, scale: {kind: StatefulSet, name: db, replicas: 3}}
until: 2h
"""
RATES = {"write": 0.1, "event": 0.05, "question": 0.3, "minute": 3.0, "record": 0.5}


def a_scenario(**faults: Fault) -> Scenario:
    scenario = read_scenario(SCENARIO)
    scenario.timeline += [TimelineEntry("0s", fault=fault) for fault in faults.values()]
    return scenario


def play_seed(scenario: Scenario, seed: int = 1) -> tuple[Story, FaultCounts]:
    story, counts = play_with(scenario, seed, ())
    assert counts is not None
    return story, counts
