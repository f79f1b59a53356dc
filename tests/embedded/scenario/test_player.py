"""Each thing a timeline can say, played in the smallest scenario that shows it."""

from __future__ import annotations

import pytest

from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Story, read_scenario
from wukong.embedded.scenario.expectations import find_differences
from wukong.errors import InputError

NODES = "nodes: [{namePrefix: n, count: 2}]\n"
WEB = """
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1"}]}
"""
BUDGET = """
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web}
    spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


def play(*entries: str, start: str = NODES + WEB, until: str = "1h") -> Story:
    timeline = "".join(f"\n  - {entry}" for entry in entries)
    return play_scenario(read_scenario(f"{start}\nuntil: {until}\ntimeline: {timeline or '[]'}"))


def events_of(story: Story) -> list[tuple[int, str]]:
    return [(int(event.at), event.text) for event in story.events if event.at >= 1]


def test_a_cluster_left_alone_settles_at_once() -> None:
    story = play()
    assert story.settled
    assert story.virtual_seconds < 1
    assert (story.workloads["default/web"].available, story.workloads["default/web"].per_node) == (
        2,
        {"n1": 1, "n2": 1},
    )


def test_a_scaled_workload_gets_more_pods() -> None:
    story = play("{at: 10s, scale: {kind: Deployment, name: web, replicas: 5}}")
    summary = story.workloads["default/web"]
    assert (summary.replicas, summary.available, summary.min_available, summary.max_pods) == (5, 5, 2, 5)
    assert sum(summary.per_node.values()) == 5


def test_a_deleted_workload_takes_its_pods_along() -> None:
    story = play("{at: 10s, delete: {kind: Deployment, name: web}}")
    assert story.settled
    assert story.workloads == {}
    assert [text for _, text in events_of(story)].count("gone") == 2


def test_two_workloads_of_one_name_are_told_apart_to_the_end() -> None:
    second = (
        WEB.removeprefix("\nmanifests:\n")
        .replace("kind: Deployment", "kind: StatefulSet")
        .replace("app: web", "app: db")
    )
    story = play(start=NODES + WEB + second)
    assert {name: summary.kind for name, summary in story.workloads.items()} == {
        "default/web": "Deployment",
        "default/web.statefulset": "StatefulSet",
    }
    gone = ("{at: 10s, delete: {kind: Deployment, name: web}}", "{at: 20s, delete: {kind: StatefulSet, name: web}}")
    assert play(*gone, start=NODES + WEB + second).workloads == {}


def test_pods_that_the_server_refuses_are_told() -> None:
    refused = WEB.replace("spec: {containers", "spec: {priorityClassName: nope, containers")
    reasons = "\n".join(play(start=NODES + refused).stuck)
    assert "default/web: ProgressDeadlineExceeded: " in reasons
    assert "default/web: FailedCreate: " in reasons


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned() -> None:
    grow = "{at: 20s, scale: {kind: Deployment, name: web, replicas: 6}}"
    assert play("{at: 10s, cordon: n1}", grow).workloads["default/web"].per_node == {"n1": 1, "n2": 5}
    freed = play("{at: 10s, cordon: n1}", "{at: 11s, uncordon: n1}", grow)
    assert freed.workloads["default/web"].per_node == {"n1": 3, "n2": 3}


def test_a_drained_node_is_empty() -> None:
    story = play("{at: 10s, drain: n1}")
    assert story.workloads["default/web"].per_node == {"n2": 2}
    assert story.workloads["default/web"].restarts == 1


def test_a_drain_leaves_the_pods_of_daemon_sets() -> None:
    daemons = WEB.replace("kind: Deployment", "kind: DaemonSet").replace("      replicas: 2\n", "")
    story = play("{at: 10s, drain: n1}", start=NODES + daemons)
    assert story.settled
    assert story.workloads["default/web"].per_node == {"n1": 1, "n2": 1}
    assert story.workloads["default/web"].restarts == 0


def test_a_drain_that_a_budget_never_allows_is_stuck_and_says_so() -> None:
    story = play("{at: 10s, drain: n1}", start=NODES + WEB + BUDGET)
    assert not story.settled
    (reason,) = story.stuck
    assert reason.startswith("node n1: drain: pod default/web-")
    assert "would violate the pod's disruption budget" in reason
    (detail,) = story.stuck_details
    assert (f"{detail.subject}: {detail.reason}", detail.budget) == (reason, "default/web")
    assert detail.text == "budget default/web (minAvailable 2) lets 0 more pods go just now"
    assert story.workloads["default/web"].min_available == 2


def test_a_drain_goes_on_when_the_budget_allows_it() -> None:
    more = "{at: 10m, scale: {kind: Deployment, name: web, replicas: 3}}"
    story = play("{at: 10s, drain: n1}", more, start=NODES + WEB + BUDGET)
    assert story.settled
    assert story.workloads["default/web"].per_node == {"n2": 3}
    assert story.workloads["default/web"].min_available == 2


def test_a_silent_node_loses_its_pods_after_their_five_minutes() -> None:
    story = play("{at: 10s, notReady: n1}")
    assert story.settled
    assert story.workloads["default/web"].restarts == 1
    (silent,) = [at for at, text in events_of(story) if text == "not ready" and at >= 50][:1]
    (stopping,) = [at for at, text in events_of(story) if text == "stopping"]
    assert 300 <= stopping - silent <= 311


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    story = play("{at: 10s, notReady: n1}", "{at: 3m, ready: n1}")
    assert story.settled
    assert story.workloads["default/web"].restarts == 0
    assert story.workloads["default/web"].min_available == 1
    assert 100 < story.workloads["default/web"].unavailable_seconds < 180


def test_a_node_that_was_silenced_by_the_former_annotation_comes_back() -> None:
    silent = 'nodes: [{name: n1, annotations: {testbed.wukong/silent: "true"}}, {name: n2}]\n'
    story = play("{at: 10m, ready: n1}", start=silent + WEB)
    assert story.settled
    assert [at for at, text in events_of(story) if text == "ready"][-1] >= 600


def test_a_killed_node_is_missed_after_forty_seconds() -> None:
    story = play("{at: 10s, kill: n1}")
    assert (story.nodes.start, story.nodes.max, story.nodes.end) == (2, 2, 1)
    assert story.workloads["default/web"].per_node == {"n2": 2}
    (created,) = [at for at, text in events_of(story) if text == "created"]
    assert 50 <= created <= 70  # and the garbage collector of pods looks every twenty


def test_what_is_applied_again_is_rolled_out() -> None:
    again = WEB.replace("web:1", "web:2").removeprefix("\nmanifests:\n  - ")
    document = "\n".join(line.removeprefix("    ") for line in again.splitlines())
    indented = "\n".join(f"      {line}" for line in document.splitlines())
    story = play(f"at: 10s\n    apply:\n{indented}")
    assert story.settled
    assert [text for at, text in events_of(story) if at >= 10].count("created") == 2


def test_a_namespace_that_is_named_is_made() -> None:
    story = play(start=NODES + WEB.replace("{name: web}\n", "{name: web, namespace: shop}\n", 1))
    assert story.settled
    assert list(story.workloads) == ["shop/web"]


@pytest.mark.parametrize("prefix", ["sim.novasphere.dev", "testbed.wukong"])
def test_pods_that_never_get_ready_are_no_settled_workload(prefix: str) -> None:
    never = WEB.replace(
        "{labels: {app: web}}", f'{{labels: {{app: web}}, annotations: {{{prefix}/never-ready: "true"}}}}'
    )
    story = play(start=NODES + never)
    assert not story.settled
    assert "ProgressDeadlineExceeded" in story.stuck[0]


def test_a_pod_of_higher_priority_takes_the_place_of_another() -> None:
    large = WEB.replace('image: "web:1"', 'image: "web:1", resources: {requests: {cpu: "3"}}')
    container = "{name: a, image: b, resources: {requests: {cpu: 2}}}"
    boss = f"spec: {{priorityClassName: system-node-critical, containers: [{container}]}}"
    applied = f"apply: {{apiVersion: v1, kind: Pod, metadata: {{name: boss, namespace: kube-system}}, {boss}}}"
    story = play(f"{{at: 10s, {applied}}}", start=NODES + large)
    assert not story.settled
    assert (story.workloads["default/web"].restarts, story.workloads["default/web"].available) == (1, 1)
    assert "pending: 0/2 nodes are available: 2 Insufficient cpu" in "\n".join(story.stuck)
    (detail,) = story.stuck_details
    assert f"{detail.subject}: {detail.reason}" in story.stuck
    (group,) = detail.nodes
    assert (group.nodes, group.refusals) == (["n1", "n2"], {"NodeResourcesFit": ["Insufficient cpu"]})
    assert group.reasons == [group.details[0]["text"]]
    assert (group.details[0]["resource"], group.details[0]["missing"].keys()) == ("cpu", {"n1", "n2"})


SPOT = "nodes: [{name: a-steady, spot: false}, {name: b-spot, spot: true}]\n"
POLICY = """
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: web}
    spec: {selector: {matchLabels: {app: web}}, capacity: {strategy: spot-only}}
"""


def test_a_policy_holds_because_the_scheduler_asks_the_extender() -> None:
    assert play(start=SPOT + WEB + POLICY).workloads["default/web"].per_node == {"b-spot": 2}


def test_nobody_asks_the_extender_where_the_scenario_says_so() -> None:
    story = play(start=f"extender: false\n{SPOT}{WEB}{POLICY}")
    assert story.workloads["default/web"].per_node == {"a-steady": 1, "b-spot": 1}


def test_a_pod_that_is_deleted_by_force_does_not_wait_for_its_kubelet() -> None:
    spec = "spec: {nodeName: n1, containers: [{name: a, image: b}]}"
    lone = f"apply: {{apiVersion: v1, kind: Pod, metadata: {{name: lone}}, {spec}}}"
    gone = "delete: {kind: Pod, name: lone, gracePeriodSeconds: 0}"
    story = play(f"{{at: 10s, {lone}}}", "{at: 20s, notReady: n1}", f"{{at: 30s, {gone}}}")
    assert [event.at for event in story.events if event.subject == "pod default/lone" and event.text == "gone"] == [30]


def test_a_pod_behind_a_gate_waits_until_it_is_opened() -> None:
    spec = "spec: {schedulingGates: [{name: later}], containers: [{name: a, image: b}]}"
    gated = f"apply: {{apiVersion: v1, kind: Pod, metadata: {{name: lone}}, {spec}}}"
    opened = "patch: {kind: Pod, name: lone, type: merge, patch: {spec: {schedulingGates: null}}}"
    closed = play(f"{{at: 10s, {gated}}}")
    assert closed.stuck == ["pod default/lone: pending: Scheduling is blocked due to non-empty scheduling gates"]
    story = play(f"{{at: 10s, {gated}}}", f"{{at: 20s, {opened}}}")
    assert story.settled
    (ready,) = [event.at for event in story.events if (event.subject, event.text) == ("pod default/lone", "ready")]
    assert 20 <= ready < 21


def test_crowds_and_mixed_versions_are_seen_while_they_last() -> None:
    update = (
        "patch: {kind: Deployment, name: web, patch: {spec: {template: {spec: {containers: [{name: web, image: x}]}}}}}"
    )
    summary = play(f"{{at: 10s, {update}}}", start="nodes: [{name: n1}]\n" + WEB).workloads["default/web"]
    # A pod that stops still takes room on its node, but is none of those that the strategy bounds.
    assert (summary.max_per_node, summary.max_pods, summary.mixed_nodes) == (4, 3, 1)


def test_time_that_is_up_is_not_settled() -> None:
    story = play("{at: 10s, notReady: n1}", until="2m")
    assert not story.settled
    assert story.virtual_seconds == 120


ZONES = """
nodes:
  - {namePrefix: a, count: 2, labels: {topology.kubernetes.io/zone: a, pool: spot}}
  - {namePrefix: b, count: 2, labels: {topology.kubernetes.io/zone: b, pool: spot}}
  - {name: c, labels: {topology.kubernetes.io/zone: c}}
"""


@pytest.mark.parametrize(
    ("entry", "nodes", "texts"),
    [
        ("cordon: {zone: a}", ["a1", "a2"], ["cordoned"]),
        ("drain: {zone: a}", ["a1", "a2"], ["cordoned", "drain begins"]),
        ("kill: {selector: {matchLabels: {pool: spot}}}", ["a1", "a2", "b1", "b2"], ["gone"]),
        ("lose: {zone: b}", ["b1", "b2"], ["gone"]),
        ("lose: {selector: {matchExpressions: [{key: pool, operator: DoesNotExist}]}}", ["c"], ["gone"]),
        ("notReady: {selector: {matchLabels: {topology.kubernetes.io/zone: c}}}", ["c"], ["not ready"]),
    ],
)
def test_what_is_done_to_selected_nodes_is_done_to_each_of_them(entry: str, nodes: list[str], texts: list[str]) -> None:
    story = play(f"{{at: 10s, {entry}}}", start=ZONES + WEB)
    told = [(event.subject, event.text) for event in story.events if event.subject.startswith("node ")]
    expected = {(f"node {node}", text) for node in nodes for text in texts}
    assert {event for event in told if event[1] != "added"} == expected


def test_selected_nodes_are_all_cordoned_before_the_first_is_emptied_and_a_drain_ends_for_all() -> None:
    entries = ("{at: 10s, drain: {selector: {matchLabels: {pool: spot}}}}", "{at: 20s, uncordon: {selector: {}}}")
    story = play(*entries, "{at: 30s, drain: c}", start=ZONES + WEB)
    texts = [event.text for event in story.events if event.subject.startswith("node ") and event.text != "added"]
    assert texts == [*["cordoned"] * 4, *["drain begins"] * 4, *["uncordoned"] * 4, "cordoned", "drain begins"]
    web = story.workloads["default/web"]
    assert (story.settled, web.available, web.restarts) == (True, 2, 4)
    assert "c" not in web.per_node


def test_nodes_are_selected_by_what_they_are_when_it_happens() -> None:
    patch = "patch: {kind: Node, name: c, patch: {metadata: {labels: {pool: spot}}}}"
    kill = "kill: {selector: {matchLabels: {pool: spot}}}"
    story = play("{at: 5s, kill: a1}", f"{{at: 10s, {patch}}}", f"{{at: 20s, {kill}}}", start=ZONES + WEB)
    assert (story.nodes.start, story.nodes.end) == (5, 0)
    with pytest.raises(InputError) as caught:
        play("{at: 5s, lose: {zone: a}}", "{at: 10s, drain: {zone: a}}", start=ZONES + WEB)
    expected = "$.timeline[1].drain: there is no node in zone a. Name labels that a node has by then."
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{at: 10s, kill: n9}", '$.timeline[0].kill: the API server refuses it: nodes "n9" not found'),
        ("{at: 10s, cordon: n9}", '$.timeline[0].cordon: the API server refuses it: nodes "n9" not found'),
        ("{at: 10s, scale: {kind: Deployment, name: wb, replicas: 1}}", 'deployments.apps "wb" not found'),
    ],
)
def test_what_the_server_refuses_is_told_with_its_place(entry: str, problem: str) -> None:
    with pytest.raises(InputError, match="the API server refuses it") as caught:
        play(entry)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "unmet"),
    [
        ("{}", []),
        ("{workloads: {default/web: {available: 2, minAvailable: '>=1', perNode: {n1: 1}}}}", []),
        ("{workloads: {default/web: {maxPods: '<2'}}}", ["workloads.default/web.maxPods: expected <2, got 2"]),
        ("{workloads: {default/web: {perNode: {n3: 1}}}}", ["workloads.default/web.perNode.n3: expected 1, got 0"]),
        ("{settled: false}", ["settled: expected false, got true"]),
        ("{stuck: preempt}", ['stuck: expected a reason that contains "preempt"; nothing is stuck']),
        ("{nodes: {max: 3}}", ["nodes.max: expected 3, got 2"]),
        ("{events: [{text: created, count: 2}, {text: stopping, count: 0}]}", []),
        ("{events: [{subject: default/web, text: ready, before: 5s}]}", []),
        (
            "{events: [{subject: default/web, text: ready, after: 5s}]}",
            ['events[0]: expected "default/web: ready" at least once after 5s, got 0; it happened at {ready}'],
        ),
        (
            "{events: [{text: created, count: '>2'}, {text: on fire}]}",
            [
                'events[0]: expected "created" >2 times, got 2; it happened at {created}',
                'events[1]: expected "on fire" at least once, got 0; it happened never',
            ],
        ),
        (
            "{workloads: {default/wb: {}}}",
            ['workloads.default/wb: expected this workload, found none. Did you mean "default/web"?'],
        ),
    ],
)
def test_expectations_are_a_subset_of_the_story(expected: str, unmet: list[str]) -> None:
    scenario = read_scenario(f"{NODES}{WEB}\nexpect: {expected}")
    story = play_scenario(scenario)
    times = {  # milliseconds of them are drawn
        text: ", ".join(f"{event.at:g}s" for event in story.events if event.text == text)
        for text in ("created", "ready")
    }
    assert find_differences(scenario.expect, story) == [problem.format(**times) for problem in unmet]
