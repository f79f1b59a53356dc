"""What a StatefulSet does and says by the marks of its ordinals is what a walk over all its pods makes of them."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from embedded.actors.availability_walk import seconds_to_next_available
from embedded.actors.random_pods import START, TIMES
from embedded.actors.stateful_walk import StatefulWalk
from embedded.actors.test_daemon_index import EVENTS, Step, take_in
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.deployment.revisions import hash_template
from wukong.embedded.actors.stateful_set.ordinal_index import OrdinalIndex
from wukong.embedded.actors.stateful_set.sync import StatefulSetSync
from wukong.embedded.world.objects import StatefulSet
from wukong.ports import Document
from wukong.state import State

NAMES = ("web-0", "web-1", "web-2", "web-3", "web-01", "web-x", "other-1")
TEMPLATES: list[Document] = [{"spec": {"containers": [{"name": "main", "image": image}]}} for image in "ab"]
REVISIONS = (*(f"web-{hash_template(template)}" for template in TEMPLATES), "web-other")
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "ss", "controller": True}


@st.composite
def stateful_sets(draw: st.DrawFn) -> Document:
    spec: Document = {
        "replicas": draw(st.integers(0, 4)),
        "selector": {"matchLabels": {}},
        "serviceName": "web",
        "template": draw(st.sampled_from(TEMPLATES)),
        "podManagementPolicy": draw(st.sampled_from(("OrderedReady", "Parallel"))),
        "minReadySeconds": draw(st.sampled_from((0, 0, 6))),
        "persistentVolumeClaimRetentionPolicy": {
            when: draw(st.sampled_from(("Delete", "Retain"))) for when in ("whenDeleted", "whenScaled")
        },
    }
    if draw(st.booleans()):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    if draw(st.booleans()):
        spec["ordinals"] = {"start": draw(st.integers(0, 2))}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": draw(st.integers(0, 3))}}
    spec |= draw(st.sampled_from([{}, {"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": rolling}]))
    return {"metadata": {"name": "web", "namespace": "shop", "uid": "ss"}, "spec": spec}


@st.composite
def ordinal_pods(draw: st.DrawFn) -> Document:
    name = draw(st.sampled_from(NAMES))
    meta: Document = {
        "name": name,
        "namespace": "shop",
        "uid": f"{name}-{draw(st.integers(1, 2))}",
        "labels": {"controller-revision-hash": draw(st.sampled_from(REVISIONS))},
        "ownerReferences": [OWNER] if draw(st.integers(0, 8)) else [],
    }
    if draw(st.integers(0, 5)) == 0:
        meta["deletionTimestamp"] = TIMES[-1]
    ready = {"type": "Ready", "status": draw(st.sampled_from(("True", "True", "True", "False")))}
    ready |= {"lastTransitionTime": draw(st.sampled_from(TIMES))} if draw(st.integers(0, 4)) else {}
    phase = draw(st.sampled_from(("", "Pending", "Running", "Running", "Running", "Running", "Failed")))
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "conditions": [ready]}}


@st.composite
def claims(draw: st.DrawFn) -> Document:
    owners = [{"kind": "StatefulSet", "name": "web", "uid": "ss"}, {"kind": "Pod", "name": "web-1", "uid": "web-1-1"}]
    name = draw(st.sampled_from(("data-web-0", "data-web-1", "data-web-3", "data-web-x", "more-web-1")))
    references = [owner for owner in owners if draw(st.booleans())]
    return {"metadata": {"name": name, "namespace": "shop", "uid": "c", "ownerReferences": references}}


STEPS = st.one_of(
    st.tuples(EVENTS, st.just("Pod"), ordinal_pods()),
    st.tuples(EVENTS, st.just("Pod"), ordinal_pods()),
    st.tuples(EVENTS, st.just("PersistentVolumeClaim"), claims()),
    st.tuples(st.just("MODIFIED"), st.just("StatefulSet.apps"), stateful_sets()),
)


def check_sync(state: State, now: float) -> None:
    for stateful_set in state.all(StatefulSet):
        ordered = state.index_of(OrdinalIndex).of(stateful_set)
        sync, walk = StatefulSetSync(stateful_set, state, ordered, now), StatefulWalk(stateful_set, state, now)
        assert sync.build_status() == walk.build_status()
        expected = walk.plan_pods()
        event(", ".join(sorted({type(action).__name__ for action in expected})))
        assert sync.plan_pods() == expected
        assert set(ordered.revisions) == set(map(revision_of, walk.owned))
        least = stateful_set.spec.min_ready_seconds
        waits = seconds_to_next_available(walk.owned, least, now)
        assert ordered.seconds_to_next_available(least, now) == waits


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(stateful_sets(), st.lists(st.tuples(STEPS, st.integers(0, 9)), max_size=25), STEPS)
def test_marks_kept_change_by_change_lead_to_what_a_walk_finds(
    stateful_set: Document, steps: list[tuple[Step, int]], last: Step
) -> None:
    state, now = State(), START + 1.0
    state.index_of(OrdinalIndex)
    take_in(state, ("ADDED", "StatefulSet.apps", stateful_set), 0)
    for version, (step, seconds) in enumerate(steps, 1):
        take_in(state, step, version)
        now += seconds
        if seconds % 3:  # not at every change: what happened meanwhile is looked at together
            check_sync(state, now)
    fork = state.fork()
    take_in(fork, last, len(steps) + 1)  # what happens on one side is nothing to the other
    check_sync(fork, now)
    check_sync(state, now)
