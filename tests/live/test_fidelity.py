"""The embedded cluster tells the truth: every example and random scenarios, played there and on a real control plane.

Most of them side by side, for a real one takes real time. What is compared, and what not: docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from testbed.fidelity.command import read_examples
from testbed.fidelity.mixed_scenarios import a_mixed_scenario
from testbed.fidelity.run import Comparison, compare_all, describe
from testbed.fidelity.scenarios import a_scenario
from testbed.pytest_plugin import OwnBed
from wukong.api.kinds import KINDS
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube

SEEDS = range(1, 23)
MIXED_SEEDS = (2, 22, 31, 42)  # of which chance decides nothing; taints, drains, late nodes, preemption, going back
MUST_SHOW = {
    *("deadlock", "deadlock-two", "four-on-four", "match-label-keys", "no-surge"),
    *("versions-apart", "versions-apart-no-room", "node-silent", "stateful-set-dead-node"),
    *("two-budgets", "budget-waits", "scale-down", "daemon-set-cordon", "preemption"),
    *("no-execute-taint", "cordon-waiting", "stateful-set-volumes", "stateful-set-zone-lost"),
}


@pytest.mark.slow(waits=100, real_time=True)
async def test_scenarios_tell_the_same_story_embedded_and_on_a_real_control_plane(own_bed: OwnBed) -> None:
    bed = own_bed(nodes=0)  # pods of other tests would take up room on these nodes
    examples = read_examples()
    assert examples.keys() >= MUST_SHOW
    scenarios = {**examples, **{f"seed {seed}": a_scenario(seed) for seed in SEEDS}}
    comparing = compare_all([bed.kubeconfig], scenarios, len(scenarios), seconds_between=1.0, first_seeds=1)
    found: list[Comparison] = [each async for each in comparing]
    assert len(found) == len(scenarios)
    assert_alike(found)
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        for kind in ("Node", "Namespace", "PriorityClass", "StorageClass"):
            names = [it["metadata"]["name"] for it in (await cluster.list(KINDS.resource_named(kind), dict)).items]
            assert not [name for name in names if name.startswith("fid-")]  # nothing is left behind


@pytest.mark.slow(waits=200, real_time=True)
async def test_mixed_scenarios_tell_the_same_story_word_for_word_where_each_is_alone(own_bed: OwnBed) -> None:
    kubeconfigs = [own_bed(nodes=0).kubeconfig for _ in range(2)]
    scenarios = {f"seed {seed}": a_mixed_scenario(seed) for seed in MIXED_SEEDS}
    comparisons = [comparison async for comparison in compare_all(kubeconfigs, scenarios, first_seeds=1)]
    assert len(comparisons) == len(scenarios)
    assert_alike(comparisons)


def assert_alike(comparisons: Iterable[Comparison]) -> None:
    lines = [line for comparison in comparisons if comparison.differences for line in describe(comparison)]
    assert not lines, "\n".join(lines)
