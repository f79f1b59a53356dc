"""The rollout controller as a function: it answers whatever a state holds, and a crash after a write loses nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts import REQUIRED, a_rollout, a_service, blue_green, canary
from wukong.actions import Action, Create, Delete, Note, Patch, Scale
from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod, Service
from wukong.api.kinds import REPLICA_SETS, ROLLOUTS, SERVICES
from wukong.api.resources import Key
from wukong.api.rollout import HASH, Rollout
from wukong.controllers.rollout.controller import RolloutController
from wukong.embedded.actors.pods import is_ready
from wukong.ports import Document
from wukong.state import State

KEY = Key("default", "web")
NOW = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> float:
        return self.time


class Cluster:
    """An API server, and pods that are ready as soon as their ReplicaSet asks for them."""

    def __init__(self, strategy: Document) -> None:
        self.clock = Clock()
        self.state = State()
        self.documents: dict[str, dict[Key, Document]] = {
            kind: {} for kind in (ROLLOUTS.group_kind, REPLICA_SETS.group_kind, SERVICES.group_kind, "Pod")
        }
        self.version = 0
        self.put(ROLLOUTS.group_kind, {**a_rollout(strategy, replicas=2)})
        self.put(SERVICES.group_kind, a_service())

    def put(self, kind: str, document: Document) -> None:
        self.version += 1
        meta = {"namespace": "default", "uid": f"{kind}-{document['metadata']['name']}", **document["metadata"]}
        meta |= {"resourceVersion": str(self.version), "generation": 1}
        document = {**document, "metadata": meta}
        key = Key("default", meta["name"])
        self.documents[kind][key] = document
        struct = {ROLLOUTS.group_kind: Rollout, REPLICA_SETS.group_kind: ReplicaSet, SERVICES.group_kind: Service}
        self.state.apply("MODIFIED", msgspec.convert(document, struct.get(kind, Pod)))

    def perform(self, action: Action) -> None:
        match action:
            case Create(resource, body):
                self.put(resource.group_kind, body)
            case Patch(resource, key, patch):
                before = self.documents[resource.group_kind][key]
                assert patch.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
                self.put(
                    resource.group_kind,
                    merge(before, {**patch.body, "metadata": {**patch.body["metadata"], "resourceVersion": None}}),
                )
            case Scale(resource, key, replicas):
                self.put(
                    resource.group_kind,
                    merge(self.documents[resource.group_kind][key], {"spec": {"replicas": replicas}}),
                )
            case Delete(resource, key):
                document = self.documents[resource.group_kind].pop(key)
                self.state.apply("DELETED", msgspec.convert(document, ReplicaSet))
            case Note():
                pass

    def run_replica_sets(self) -> None:
        """Every ReplicaSet has the pods that it asks for, ready."""
        for key, document in list(self.documents[REPLICA_SETS.group_kind].items()):
            meta = document["metadata"]
            for number in range(4):
                name = f"{key.name}-{number}"
                pod_key = Key("default", name)
                is_wanted = number < document["spec"]["replicas"]
                if is_wanted and pod_key not in self.documents["Pod"]:
                    self.put(
                        "Pod",
                        {
                            "kind": "Pod",
                            "metadata": {
                                "name": name,
                                "labels": document["spec"]["template"]["metadata"]["labels"],
                                "ownerReferences": [
                                    {
                                        "kind": "ReplicaSet",
                                        "apiVersion": "apps/v1",
                                        "name": key.name,
                                        "uid": meta["uid"],
                                        "controller": True,
                                    }
                                ],
                            },
                            "spec": {"nodeName": "n", "containers": []},
                            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                        },
                    )
                elif not is_wanted and pod_key in self.documents["Pod"]:
                    self.state.apply("DELETED", msgspec.convert(self.documents["Pod"].pop(pod_key), Pod))

    def change_image(self, image: str) -> None:
        rollout = self.documents[ROLLOUTS.group_kind][KEY]
        template = a_rollout({}, image)["spec"]["template"]
        self.put(ROLLOUTS.group_kind, {**rollout, "spec": {**rollout["spec"], "template": template}})

    @property
    def rollout(self) -> Rollout:
        rollout = self.state.get(Rollout, KEY)
        assert rollout is not None
        return rollout

    def count_served(self) -> int:
        """Ready pods behind the Service."""
        service = self.state.get(Service, KEY)
        assert service is not None
        selector = (service.spec.selector or {}).items()
        return sum(is_ready(pod) for pod in self.state.all(Pod) if selector <= pod.metadata.labels.items())


def merge(before: Document, patch: Document) -> Document:
    merged = dict(before)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = merge(before.get(name) or {}, value)
        else:
            merged[name] = value
    return merged


def settle(cluster: Cluster, crash_after: list[int]) -> None:
    """Look and act until nothing is left; each look is cut off after as many writes as the list says, if it does."""
    controller = RolloutController()
    for turn in range(200):
        outcome = controller.reconcile(KEY, cluster.state, cluster.clock.now())
        most = crash_after[turn] if turn < len(crash_after) else None
        for action in outcome.actions[:most]:
            cluster.perform(action)
        cluster.run_replica_sets()
        if not outcome.actions and outcome.requeue_after is None:
            return
        if not outcome.actions:
            cluster.clock.time += outcome.requeue_after or 0.0
    pytest.fail(f"it never comes to rest: {cluster.rollout.status}")


STRATEGIES = [
    blue_green(),
    blue_green(antiAffinity=REQUIRED, scaleDownDelaySeconds=5),
    blue_green(previewReplicas=1, autoPromotionSeconds=7),
    canary({"setWeight": 50}, {"pause": {"duration": 3}}, antiAffinity=REQUIRED),
    canary(maxSurge=0, maxUnavailable=1),
]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(STRATEGIES), st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 2), max_size=12))
def test_a_crash_after_any_write_loses_nothing(strategy: Document, first: list[int], second: list[int]) -> None:
    cluster = Cluster(strategy)
    settle(cluster, first)
    cluster.change_image("web:2")
    settle(cluster, second)
    status = cluster.rollout.status
    assert (status.phase, status.stable) == ("Healthy", status.current)
    sizes = {one.metadata.labels[HASH]: one.spec.replicas for one in cluster.state.all(ReplicaSet)}
    assert sizes.pop(status.current) == 2
    assert set(sizes.values()) == {0}
    assert cluster.count_served() == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_written_where_all_is_as_it_should_be(strategy: Document) -> None:
    cluster = Cluster(strategy)
    settle(cluster, [])
    assert RolloutController().reconcile(KEY, cluster.state, cluster.clock.now()).actions == ()


@pytest.mark.parametrize("strategy", [blue_green(), canary({"setWeight": 50})])
def test_no_version_is_made_while_it_is_paused(strategy: Document) -> None:
    cluster = Cluster(strategy)
    settle(cluster, [])
    rollout = cluster.documents[ROLLOUTS.group_kind][KEY]
    cluster.put(ROLLOUTS.group_kind, merge(rollout, {"spec": {"paused": True}}))
    cluster.change_image("web:2")
    settle(cluster, [])
    assert (cluster.rollout.status.phase, cluster.count_served()) == ("Paused", 2)
    assert sum(one.spec.replicas or 0 for one in cluster.state.all(ReplicaSet)) == 2
    cluster.put(ROLLOUTS.group_kind, merge(cluster.documents[ROLLOUTS.group_kind][KEY], {"spec": {"paused": False}}))
    settle(cluster, [])
    assert cluster.rollout.status.phase == "Healthy"


def test_going_back_is_a_switch_even_if_the_first_try_of_it_is_lost() -> None:
    cluster = Cluster(blue_green(scaleDownDelaySeconds=600))
    settle_once = RolloutController()
    for _ in range(20):
        for action in settle_once.reconcile(KEY, cluster.state, NOW).actions:
            cluster.perform(action)
        cluster.run_replica_sets()
    cluster.change_image("web:2")
    for _ in range(20):
        for action in settle_once.reconcile(KEY, cluster.state, NOW).actions:
            cluster.perform(action)
        cluster.run_replica_sets()
    rollout = cluster.documents[ROLLOUTS.group_kind][KEY]
    by_hand = {"spec": {"strategy": {"blueGreen": {"autoPromotionEnabled": False}}}}
    cluster.put(ROLLOUTS.group_kind, merge(rollout, by_hand))
    cluster.change_image("web:1")
    (first, *_) = settle_once.reconcile(KEY, cluster.state, NOW).actions
    cluster.perform(first)  # the status, and then a crash
    settle(cluster, [])
    assert (cluster.rollout.status.phase, cluster.rollout.status.revision) == ("Healthy", 3)


def test_a_rollout_that_is_not_accepted_changes_nothing_but_its_status() -> None:
    cluster = Cluster(blue_green())
    settle(cluster, [])
    rollout = cluster.documents[ROLLOUTS.group_kind][KEY]
    cluster.put(ROLLOUTS.group_kind, {**rollout, "spec": {**rollout["spec"], "strategy": {}}})
    actions = RolloutController().reconcile(KEY, cluster.state, NOW).actions
    (patch,) = [action for action in actions if isinstance(action, Patch)]
    assert (patch.resource, patch.subresource) == (ROLLOUTS, "status")
    assert patch.patch.body["status"]["phase"] == "NotAccepted"
    assert patch.patch.body["status"]["stable"] == rollout["status"]["stable"]


def test_a_service_that_belongs_to_an_older_rollout_is_refused() -> None:
    cluster = Cluster(blue_green())
    younger = a_rollout(blue_green(), name="younger")
    younger["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.put(ROLLOUTS.group_kind, younger)
    actions = RolloutController().reconcile(Key("default", "younger"), cluster.state, NOW).actions
    assert "belongs to Rollout web" in str(actions)
    assert not any(isinstance(action, Create) for action in actions)


def test_a_name_that_somebody_else_has_is_said_and_left_alone() -> None:
    cluster = Cluster(canary())
    outcome = RolloutController().reconcile(KEY, cluster.state, NOW)
    (create,) = [action for action in outcome.actions if isinstance(action, Create)]
    stranger = {**create.body, "metadata": {**create.body["metadata"], "ownerReferences": []}}
    cluster.put(REPLICA_SETS.group_kind, stranger)
    actions = RolloutController().reconcile(KEY, cluster.state, NOW).actions
    assert "belongs to somebody else" in str(actions)
    assert not any(isinstance(action, Create | Scale) for action in actions)


NUMBERS = st.integers(-(2**63), 2**63 - 1)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("observedGeneration", "revision", "step", "replicas"), NUMBERS),
        **{name: st.text(max_size=8) for name in ("phase", "stable", "previous", "current", "pausedAt", "promotedAt")},
    },
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from([f"placement.novasphere.dev/{name}" for name in ("promote", "abort", "revision", "version-rule")]),
    st.text(max_size=8) | st.sampled_from(["1", "2/full", "99999999999999999999", '{"a":{}}', "[" * 9]),
)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(STRATEGIES), STATUSES, ANNOTATIONS, ANNOTATIONS, st.text(max_size=8))
def test_whatever_objects_say_it_comes_to_rest_with_all_pods_served(
    strategy: Document, status: Document, asked: dict[str, str], noted: dict[str, str], selected: str
) -> None:
    cluster = Cluster(strategy)
    settle(cluster, [])
    rollout = cluster.documents[ROLLOUTS.group_kind][KEY]
    meta = {**rollout["metadata"], "annotations": asked}
    cluster.put(ROLLOUTS.group_kind, {**rollout, "metadata": meta, "status": {**rollout["status"], **status}})
    for replica_set in list(cluster.documents[REPLICA_SETS.group_kind].values()):
        annotations = {**replica_set["metadata"]["annotations"], **noted}
        cluster.put(
            REPLICA_SETS.group_kind,
            {**replica_set, "metadata": {**replica_set["metadata"], "annotations": annotations}},
        )
    service = cluster.documents[SERVICES.group_kind][KEY]
    cluster.put(SERVICES.group_kind, merge(service, {"spec": {"selector": {HASH: selected}}}))
    settle(cluster, [])
    assert sum(is_ready(pod) for pod in cluster.state.all(Pod)) >= 2
    if "blueGreen" in strategy:
        assert cluster.count_served() >= 2
