"""Words that an anonymous snapshot keeps: those that everybody's cluster may say, one by one."""

from __future__ import annotations

import pytest

from wukong.api.meta import ObjectMeta
from wukong.cluster.field_shapes import fields_of_struct
from wukong.cluster.public_vocabulary import collect_vocabulary, has_public_form

PUBLIC = [
    "kube-system",
    "default-scheduler",
    "0.0.0.0",
    "127.0.0.1",
    "::",
    "::1",
    "cpu",
    "nvidia.com/gpu",
    "topology.kubernetes.io/zone",
    "pod-template-hash",
    "usage.novasphere.dev/cpu",
    "usage.novasphere.dev/memory",
    "usage.novasphere.dev/storage",
    "karpenter.sh/capacity-type",
    "node.kubernetes.io/not-ready",
    "karpenter.sh/disrupted",
    "controller.kubernetes.io/pod-deletion-cost",
    "deprecated.daemonset.template.generation",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "NoSchedule",
    "CrashLoopBackOff",
    "spot-first",
    "Observe",
    "score",
    "Never",
    "CronJob",
    "cost-aware",
    "Pod",
    "apps/v1",
    "placement.novasphere.dev/v1alpha1",
    "IfHealthyBudget",
    "ScheduleAnyway",
]
BEHAVIOUR = [
    "silent",
    "pull-seconds",
    "start-seconds",
    "ready-seconds",
    "never-ready",
    "unready-after-seconds",
    "stop-seconds",
    "pull-fails",
    "run-seconds",
    "exit-code",
    "spread",
]
PRIVATE = [
    "kubernetes.io/our-merger",
    "web",
    "shop",
    "10.0.0.1",
    "nvidia.com/secret",
    "usage.novasphere.dev/profit",
    "deployment.kubernetes.io/ceo",
    "sim.novasphere.dev/ceo",
    "containers",
    "nodeSelector",
    "readyReplicas",
    "Kube-System",
]


@pytest.mark.parametrize("word", PUBLIC)
def test_a_word_of_kubernetes_of_clouds_and_of_ours_is_public(word: str) -> None:
    assert collect_vocabulary().is_public(word)
    assert not collect_vocabulary().is_public(f"{word}x")


@pytest.mark.parametrize("prefix", ["sim.novasphere.dev", "testbed.wukong"])
@pytest.mark.parametrize("name", BEHAVIOUR)
def test_annotations_that_say_how_pods_behave_in_simulations_are_public(prefix: str, name: str) -> None:
    assert collect_vocabulary().is_public(f"{prefix}/{name}")
    assert not collect_vocabulary().is_public(f"{prefix}/{name}x")


@pytest.mark.parametrize("word", PRIVATE)
def test_any_other_word_is_private_also_where_it_begins_alike_or_is_a_fields_name(word: str) -> None:
    assert not collect_vocabulary().is_public(word)


@pytest.mark.parametrize(
    ("text", "is_public"),
    [
        ("12", True),
        ("-1.5", True),
        ("25%", True),
        ("500m", True),
        ("2Gi", True),
        ("1e3", True),
        ("12x", False),
        ("2026-01-02", True),
        ("2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05.678+02:00", True),
        ("2026-1-2", False),
        ("hugepages-2Mi", True),
        ("hugepages-big", False),
        ("SPOT", True),
        ("On-Demand", True),
        ("TRUE", True),
        ("m6i.xlarge", True),
        ("house-brand", False),
    ],
)
def test_numbers_quantities_times_and_instance_types_have_a_public_form(text: str, is_public: bool) -> None:
    assert has_public_form(text) is is_public


def test_names_of_fields_are_known_as_such() -> None:
    fields = collect_vocabulary().fields
    assert set(fields_of_struct(ObjectMeta)) <= fields
    assert {"readyReplicas", "takenAt", "containerStatuses", "items", "byInstanceType"} <= fields
    assert "" not in fields
    assert collect_vocabulary().is_public("")
