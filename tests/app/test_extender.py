"""The extender at work: what it counts and tells."""

from __future__ import annotations

import numpy as np

from builders import a_node, a_pod, a_usage, measure
from policies import spot, steady
from wukong.app.components.extender.server import CountingExtender
from wukong.placement.slices import finish
from wukong.replies.extender.verbs import Extender
from wukong.runtime.metrics import Metrics
from wukong.state import State


class Hand:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


def test_a_stale_mirror_is_shown_and_its_refusals_are_counted() -> None:
    state, clock, metrics = State(), Hand(), Metrics()
    state.replace("Node", [spot("s"), steady("d")])
    extender = Extender(state, node_staleness=lambda now: now - 1000.0)
    counting = CountingExtender(extender, metrics, clock)
    figures = metrics.registry.get_sample_value
    assert figures("wukong_extender_stale_mirror") == 0
    clock.time += 163
    fleet = extender.fleet(clock.now())
    finish(counting.filter_in_slices(a_pod(), fleet, np.arange(fleet.size, dtype=np.intp), clock.now()))
    refused = {"reason": "stale-mirror", "mode": "enforce"}
    assert figures("wukong_extender_stale_mirror") == 1
    assert figures("wukong_extender_nodes_refused_total", refused) == 1
    assert figures("wukong_extender_fallbacks_total") == 1


def test_usage_grows_old_and_stale_though_no_scheduler_asks() -> None:
    state, clock, metrics = State(), Hand(), Metrics()
    state.replace("Node", [a_node("quiet"), a_node("lost")])
    measure(state, a_usage("quiet", 1000.0, cpu=10), a_usage("lost", 990.0, cpu=10))
    CountingExtender(Extender(state), metrics, clock)
    figures = metrics.registry.get_sample_value
    assert (figures("wukong_usage_stale_nodes"), figures("wukong_usage_age_seconds")) == (0, 10)
    clock.time += 175
    assert (figures("wukong_usage_stale_nodes"), figures("wukong_usage_age_seconds")) == (1, 185)
