"""The component policy in an embedded cluster: what a policy asks for comes about, without faults and under all."""

from __future__ import annotations

from pathlib import Path

import pytest

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.placement import PlacementPolicy
from wukong.api.policy_status import Condition
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_world, choose_components, faults_of, read_component_options
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Story, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.world import World

BUDGETS = """
components: [policy]
nodes:
  - {namePrefix: n, count: 3}
manifests:
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: web}
    spec: &web {selector: {matchLabels: {app: web}}, disruption: {maxUnavailable: 1}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: api}
    spec: {selector: {matchLabels: {app: api}}, disruption: {minAvailable: 1}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: ClusterPlacementPolicy
    metadata: {name: all}
    spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}, disruption: {minAvailable: 1}}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: &deployment
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: api}
    spec:
      replicas: 2
      selector: {matchLabels: {app: api}}
      template:
        metadata: {labels: {app: api}}
        spec: {containers: [{name: api, image: "api:1", resources: {requests: {cpu: "1"}}}]}
timeline:
  - {at: 30s, drain: n1}
  - at: 40s
    apply:
      apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: theirs}
      spec: {minAvailable: 1, selector: {matchLabels: {app: api}}}
  - {at: 60s, uncordon: n1}
  - {at: 80s, drain: n2}
  - at: 90s
    apply:
      apiVersion: placement.novasphere.dev/v1alpha1
      kind: PlacementPolicy
      metadata: {name: web}
      spec: {<<: *web, disruption: {minAvailable: "50%"}}
  - {at: 100s, patch: {kind: PodDisruptionBudget, name: wukong-web, type: merge, patch: {spec: {minAvailable: 3}}}}
  - {at: 120s, uncordon: n2}
until: 2h
"""


def play_with_world(text: str, seed: int = 0, faults: tuple[str, ...] = ()) -> tuple[World, Story]:
    scenario, drains = read_scenario(text), Drains()
    fault_injection = faults_of(scenario, seed, faults)
    settings = Settings(seed, choose_components(scenario), options=read_component_options(scenario))
    world = build_world(settings, drains, fault_injection=fault_injection)
    return world, play(world, scenario, drains, None, fault_injection)


def budgets_of(world: World) -> dict[str, PodDisruptionBudget]:
    return {budget.metadata.name: budget for budget in world.state.all(PodDisruptionBudget)}


def condition_of(world: World, name: str, type_name: str) -> Condition:
    policy = world.state.get(PlacementPolicy, Key("default", name))
    assert policy is not None
    return next(condition for condition in policy.status.conditions if condition.type == type_name)


@pytest.mark.parametrize("seed", range(7))
def test_budgets_are_as_asked_and_never_two_over_one_pod(seed: int) -> None:
    world, story = play_with_world(BUDGETS, seed, tuple(TYPES) if seed else ())
    assert story.settled, story.stuck
    assert story.findings == []
    budgets = budgets_of(world)
    assert sorted(budgets) == ["theirs", "wukong-web"], "the cluster's yields to web's, and api's to theirs"
    assert (budgets["wukong-web"].spec.min_available, budgets["wukong-web"].spec.max_unavailable) == ("50%", None)
    conflict = condition_of(world, "api", "BudgetConflict")
    assert conflict.status == "True"
    assert "PodDisruptionBudget theirs" in conflict.message
    assert condition_of(world, "web", "BudgetConflict").status == "False"


EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
SHARES = (EXAMPLES / "policies.yaml").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_shares_come_to_rest_and_nobody_is_evicted_after_that(seed: int) -> None:
    world, story = play_with_world(SHARES, seed, tuple(TYPES) if seed else ())
    assert story.settled, story.stuck
    assert story.findings == []
    world.run(seconds=1800)
    pods = {pod.metadata.uid for pod in world.state.all(Pod)}
    version = world.server.database.version
    world.run(seconds=1800)
    assert {pod.metadata.uid for pod in world.state.all(Pod)} == pods
    assert world.server.database.version == version, "nothing is written any more"
    policy = world.state.get(PlacementPolicy, Key("default", "web"))
    assert policy is not None
    split = policy.status.split
    assert split is not None
    assert (split.on_demand + split.spot, split.owners) == (6, 1)
    is_held = condition_of(world, "web", "SplitHeld").status == "True"
    assert split.misplaced == 0 or is_held
    assert seed or not is_held


# Nobody tells the scheduler that one pod belongs on demand: spot-first puts each replacement on a spot node again.
VAIN = SHARES.replace("- {at: 0s, cordon: spot-1}", "- {at: 0s, uncordon: spot-1}").replace(
    "- {at: 0s, cordon: spot-2}", "- {at: 20m, uncordon: spot-2}"
)


@pytest.mark.slow
def test_what_evictions_do_not_put_right_is_given_up_after_three() -> None:
    world, story = play_with_world(VAIN.partition("  # Four go back")[0])
    assert story.settled, story.stuck
    assert story.findings == []
    assert story.workloads["default/web"].restarts == 3
    held = condition_of(world, "web", "SplitHeld")
    assert (held.status, held.reason) == ("True", "EvictionsDoNotHelp")
    assert "ReplicaSet default/web-" in held.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_with_admission_shares_come_out_exactly_whatever_went_wrong(seed: int) -> None:
    scenario = (EXAMPLES / "soak-policies.yaml").read_text("utf-8")
    world, story = play_with_world(scenario, seed, tuple(TYPES) if seed else ())
    assert story.settled, story.stuck
    assert story.findings == []
    world.run(seconds=3600)
    version = world.server.database.version
    world.run(seconds=3600)
    assert world.server.database.version == version, "nothing is written any more"
    # web: half of three on demand, rounded up; api: half of four on spot nodes.
    for name, expected in (("web", (2, 1)), ("api", (2, 2))):
        policy = world.state.get(PlacementPolicy, Key("default", name))
        assert policy is not None
        split = policy.status.split
        assert split is not None
        assert (split.on_demand, split.spot) == expected
        assert (split.misplaced, split.repairs) == (0, [])
        assert condition_of(world, name, "SplitHeld").status == "False"
    assert sorted(budgets_of(world)) == ["wukong-api", "wukong-web"]
