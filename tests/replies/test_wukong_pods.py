"""A pod of a Wukong is judged by the Wukong's scheduling block beside its policy, as the mirror has both right now."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from builders import a_node, a_pod, a_usage, measure
from policies import a_policy, a_rule, a_wukong, needs, prefers, rows_of, spot, steady
from wukong.api.core import Pod
from wukong.api.kinds import WUKONGS
from wukong.api.meta import Object
from wukong.api.unreadable import Unreadable
from wukong.api.vm import NAME_LABEL, Wukong, WukongStatus
from wukong.placement.rules import BUILT_IN
from wukong.placement.wukong_plan import compile_wukong
from wukong.replies.extender.verbs import Extender, FilterResult, Settings
from wukong.state import State

NOW = 1000.0
JUDGING = Settings(strategy="", judges_wukong_resources=True)
BY_LABELS = Settings(strategy="")
SMALL, LARGE = a_node("small", cpu="2", memory="4Gi"), a_node("large", cpu="8", memory="32Gi")


def an_extender(*objects: Object, settings: Settings = JUDGING) -> Extender:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return Extender(state, settings)


def vm_pod(wukong: str = "db", **more: Any) -> Pod:
    return a_pod("virt-launcher-db", labels={NAME_LABEL: wukong, "app": "db"}, **more)


def run_filter(extender: Extender, pod: Pod) -> FilterResult:
    fleet = extender.fleet(NOW)
    return extender.filter(pod, fleet, rows_of(fleet, *fleet.names), NOW)


def list_kept(extender: Extender, pod: Pod | None = None) -> list[str]:
    kept = run_filter(extender, pod or vm_pod()).kept.tolist()
    return [name for name, is_kept in zip(extender.fleet(NOW).names, kept, strict=True) if is_kept]


def run_prioritize(extender: Extender, pod: Pod | None = None) -> dict[str, int]:
    fleet = extender.fleet(NOW)
    scores = extender.prioritize(pod or vm_pod(), fleet, np.arange(fleet.size, dtype=np.intp), NOW)
    return dict(zip(fleet.names, scores.tolist(), strict=True))


def put(extender: Extender, subject: Object, version: str) -> None:
    subject.metadata.resource_version = version
    extender.state.apply("MODIFIED", subject)


# ---- whose block counts


def test_the_floor_of_a_wukong_holds_for_its_pods_and_nobody_elses() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(floors=[needs("memory", "8Gi")]))
    assert list_kept(extender) == ["large"]
    assert list_kept(extender, a_pod(app="db")) == ["large", "small"]
    assert list_kept(extender, vm_pod("other")) == ["large", "small"]
    elsewhere = vm_pod()
    elsewhere.metadata.namespace = "lab"
    assert list_kept(extender, elsewhere) == ["large", "small"]


def test_the_reason_names_the_wukong() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(floors=[needs("memory", "8Gi")]))
    (refusal,) = run_filter(extender, vm_pod()).refusals
    assert refusal.reason == "less than memory 8Gi free (Wukong default/db)"
    assert refusal.is_final


def test_busy_nodes_get_less_as_a_wukong_prefers_it() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(preferred_cpu=prefers(80, "70%")))
    measure(extender.state, a_usage("small", NOW, cpu=10.0), a_usage("large", NOW, cpu=90.0))
    assert run_prioritize(extender) == {"small": 9, "large": 1}
    measure(extender.state, a_usage("small", NOW, cpu=90.0), a_usage("large", NOW, cpu=10.0))
    assert run_prioritize(extender) == {"small": 1, "large": 9}


def test_by_labels_the_extender_leaves_resource_affinity_to_the_labels() -> None:
    wukong = a_wukong(floors=[needs("memory", "8Gi")], preferred_cpu=prefers(80, "70%"))
    extender = an_extender(SMALL, LARGE, wukong, settings=BY_LABELS)
    measure(extender.state, a_usage("small", NOW, cpu=10.0), a_usage("large", NOW, cpu=90.0))
    assert list_kept(extender) == ["large", "small"]
    assert run_prioritize(extender) == {"small": 0, "large": 0}


@pytest.mark.parametrize("settings", [JUDGING, BY_LABELS])
def test_rules_are_judged_however_resources_are(settings: Settings) -> None:
    fast, slow = a_node("fast", labels={"disk": "ssd"}), a_node("slow")
    rule = a_rule("label-match", "filter", matchLabels={"disk": "ssd"})
    assert list_kept(an_extender(fast, slow, a_wukong(rules=[rule]), settings=settings)) == ["fast"]


def test_the_priority_of_a_wukong_makes_its_pods_critical() -> None:
    assert list_kept(an_extender(spot("s1"), steady("d1"), a_wukong(priority=5000))) == ["d1"]


def test_an_edit_takes_effect_at_once_and_so_does_removal() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(floors=[needs("memory", "8Gi")]))
    assert list_kept(extender) == ["large"]
    put(extender, a_wukong(floors=[needs("memory", "2Gi")]), "2")
    assert list_kept(extender) == ["large", "small"]
    put(extender, a_wukong(floors=[needs("memory", "1Ti")]), "3")
    assert list_kept(extender) == []
    extender.state.apply("DELETED", a_wukong())
    assert list_kept(extender) == ["large", "small"]


def test_a_written_status_compiles_nothing_anew() -> None:
    wukong = a_wukong(floors=[needs("memory", "8Gi")])
    extender = an_extender(SMALL, LARGE, wukong)
    plan = extender.match(vm_pod()).plan
    put(extender, msgspec.structs.replace(wukong, status=WukongStatus(ready_replicas=1)), "2")
    assert extender.match(vm_pod()).plan is plan


# ---- beside a policy


def test_a_wukong_that_says_nothing_leaves_the_policy_as_it_is() -> None:
    extender = an_extender(a_policy(floors=[needs("cpu", 1)]), a_wukong())
    assert extender.match(vm_pod()).plan is extender.match(a_pod()).plan


def test_what_the_wukong_says_counts_instead_of_the_policy_about_the_same_thing() -> None:
    policy = a_policy(
        strategy="spot-only",
        floors=[needs("memory", "16Gi"), needs("cpu", 2)],
        preferred_cpu=prefers(10, "50%"),
        preferred_memory=prefers(20, "60%"),
        rules=[a_rule("load-aware", weight=1), a_rule("cost-aware", weight=3)],
        priority=7,
        preemptionPolicy="Never",
    )
    wukong = a_wukong(
        floors=[needs("memory", "2Gi")],
        preferred_cpu=prefers(80, "70%"),
        rules=[a_rule("load-aware", weight=50)],
        preemptionPolicy="PreemptLowerPriority",
    )
    plan = an_extender(policy, wukong).match(vm_pod()).plan
    assert plan.name == "Wukong default/db over PlacementPolicy default/web"
    assert plan.strategy == "spot-only"
    assert [floor.text for floor in plan.floors] == ["cpu 2", "memory 2Gi"]
    assert [(entry.resource, entry.weight) for entry in plan.preferences] == [("memory", 20), ("cpu", 80)]
    assert [(use.rule.name, use.weight) for use in plan.scores] == [("cost-aware", 3), ("load-aware", 50)]
    assert (plan.priority, plan.never_preempts) == (7, False)


def test_by_labels_a_policy_has_no_say_in_what_the_wukong_asks_by_labels() -> None:
    policy = a_policy(floors=[needs("memory", "16Gi"), needs("cpu", 2)], preferred_cpu=prefers(10, "50%"))
    wukong = a_wukong(floors=[needs("memory", "2Gi")], preferred_cpu=prefers(80, "70%"))
    plan = an_extender(policy, wukong, settings=BY_LABELS).match(vm_pod()).plan
    assert [floor.text for floor in plan.floors] == ["cpu 2"]
    assert plan.preferences == ()


def test_a_policy_that_only_observes_takes_nothing_from_a_wukong() -> None:
    nodes = (a_node("small", memory="4Gi"), a_node("large", memory="32Gi"), a_node("larger", memory="64Gi"))
    policy = a_policy(mode="Observe", floors=[needs("cpu", "1M")], strategy="spot-only")
    extender = an_extender(*nodes, policy, a_wukong(floors=[needs("memory", "8Gi")]))
    result = run_filter(extender, vm_pod())
    assert list_kept(extender) == ["large", "larger"]
    assert [refusal.kind for refusal in result.refusals] == ["resources"]
    assert [(refusal.reason.split(" (")[0], int(refusal.mask.sum())) for refusal in result.observed] == [
        ("less than cpu 1M free", 2)
    ]
    assert "observes only" in result.notes[0].text


def test_a_policy_that_comes_later_holds_for_the_pods_of_wukongs_too() -> None:
    extender = an_extender(spot("s1"), steady("d1"), a_wukong(floors=[needs("cpu", "1m")]))
    assert list_kept(extender) == ["d1", "s1"]
    put(extender, a_policy(strategy="spot-only"), "2")
    assert list_kept(extender) == ["s1"]
    extender.state.apply("DELETED", a_policy())
    assert list_kept(extender) == ["d1", "s1"]


def test_nobody_is_preempted_for_a_wukong_that_says_never() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(preemptionPolicy="Never"))
    assert extender.preempt(vm_pod(), {"small": [], "large": []}, NOW) == []
    assert extender.preempt(a_pod(), {"small": [], "large": []}, NOW) == ["small", "large"]


# ---- devices


def test_gpu_means_the_devices_that_the_wukong_names() -> None:
    a100, any_gpu = a_node("a100", extra={"nvidia.com/A100": "2"}), a_node("plain", extra={"nvidia.com/gpu": "4"})
    floors = [needs("gpu", 1)]
    assert list_kept(an_extender(a100, any_gpu, a_wukong(floors=floors))) == ["plain"]
    assert list_kept(an_extender(a100, any_gpu, a_wukong(floors=floors, gpus=["nvidia.com/A100"]))) == ["a100"]
    twice = [needs("nvidia.com/A100", 3), *floors]
    assert list_kept(an_extender(a100, any_gpu, a_wukong(floors=twice, gpus=["nvidia.com/A100"]))) == []


# ---- what makes no sense

HOSTILE: dict[str, Wukong] = {
    "a floor of an unknown resource": a_wukong(floors=[needs("cpus", 1)]),
    "a floor that is no quantity": a_wukong(floors=[needs("cpu", "lots")]),
    "a negative floor": a_wukong(floors=[needs("cpu", "-1")]),
    "ten thousand floors": a_wukong(floors=[needs("cpu", 1)] * 10_000),
    "a threshold of 900%": a_wukong(preferred_cpu=prefers(50, "900%")),
    "a weight of two thousand million": a_wukong(preferred_cpu=prefers(2_000_000_000, "70%")),
    "an unknown rule": a_wukong(rules=[a_rule("no-such-rule")]),
    "ten thousand rules": a_wukong(rules=[a_rule("load-aware")] * 10_000),
    "a rule with a config of its own making": a_wukong(rules=[a_rule("load-aware", depth=[[[[1]]]])]),
    "a device that is no resource": a_wukong(floors=[needs("gpu", 1)], gpus=["x" * 100_000]),
    "ten thousand devices": a_wukong(floors=[needs("gpu", 1)], gpus=[f"a.com/{n}" for n in range(10_000)]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_wukong_that_makes_no_sense_stands_in_nobodys_way(what: str) -> None:
    good = a_wukong("good", floors=[needs("memory", "8Gi")])
    extender = an_extender(SMALL, LARGE, HOSTILE[what], good)
    assert list_kept(extender) == ["large", "small"]
    assert list_kept(extender, vm_pod("good")) == ["large"]


def test_absurd_floors_are_simply_met_by_nobody() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(floors=[needs("memory", "1e999999")]))
    assert list_kept(extender) == []


def test_an_unreadable_wukong_is_left_out_and_the_one_before_it_with_it() -> None:
    extender = an_extender(SMALL, LARGE, a_wukong(floors=[needs("memory", "8Gi")]))
    assert list_kept(extender) == ["large"]
    broken = Unreadable(metadata=a_wukong().metadata, problem="$.spec.cpu: expected an integer")
    extender.state.apply("MODIFIED", broken, WUKONGS.group_kind)
    assert list_kept(extender) == ["large", "small"]


def test_a_plan_of_every_part_of_the_block_is_what_a_policy_with_it_has() -> None:
    """The same code judges both: a Wukong's block alone is the plan of a policy that says the same."""
    said: dict[str, Any] = {
        "floors": [needs("memory", "8Gi"), needs("gpu", 1)],
        "preferred_cpu": prefers(80, "70%"),
        "rules": [a_rule("load-aware", weight=9)],
        "priority": 3,
        "preemptionPolicy": "Never",
    }
    policy = an_extender(a_policy(**said)).match(a_pod()).plan
    wukong = compile_wukong(a_wukong(**said), BUILT_IN)
    assert wukong is not None
    fields = ("floors", "preferences", "priority", "never_preempts")
    assert [getattr(wukong.block, field) for field in fields] == [getattr(policy, field) for field in fields]
    assert [(use.rule, use.config, use.weight) for use in wukong.block.scores] == [
        (use.rule, use.config, use.weight) for use in policy.scores
    ]
