"""Spot or on-demand, in every cloud's own words."""

from __future__ import annotations

import pytest

from wukong.placement.capacity import SPOT_LABELS, is_spot

OURS = "node.kubernetes.io/capacity"
KARPENTER = "karpenter.sh/capacity-type"
EKS = "eks.amazonaws.com/capacityType"
GKE_SPOT, GKE_PREEMPTIBLE = "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible"
GKE_PROVISIONING = "cloud.google.com/gke-provisioning"
AKS = "kubernetes.azure.com/scalesetpriority"
OKE = "oci.oraclecloud.com/oke-is-preemptible"
LIFECYCLE, SPOTINST, CAST = "node.kubernetes.io/lifecycle", "spotinst.io/node-lifecycle", "scheduling.cast.ai/spot"


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        (OURS, "spot", True),
        (OURS, "on-demand", False),
        (KARPENTER, "spot", True),
        (KARPENTER, "on-demand", False),
        (KARPENTER, "reserved", False),
        (EKS, "SPOT", True),
        (EKS, "ON_DEMAND", False),
        (GKE_SPOT, "true", True),
        (GKE_SPOT, "false", False),
        (GKE_PREEMPTIBLE, "true", True),
        (GKE_PREEMPTIBLE, "false", False),
        (GKE_PROVISIONING, "spot", True),
        (GKE_PROVISIONING, "preemptible", True),
        (GKE_PROVISIONING, "standard", False),
        (AKS, "spot", True),
        (AKS, "regular", False),
        (OKE, "true", True),
        (OKE, "false", False),
        (LIFECYCLE, "spot", True),
        (LIFECYCLE, "normal", False),
        (SPOTINST, "spot", True),
        (SPOTINST, "od", False),
        (CAST, "true", True),
        (CAST, "false", False),
        (OURS, "Spot", True),
        (EKS, "spot", True),
        (GKE_SPOT, "True", True),
        (OURS, "", False),
        (OURS, "spotless", False),
        ("example.com/capacity", "spot", False),
    ],
)
def test_a_label_says_what_a_node_is(label: str, value: str, expected: bool) -> None:
    assert is_spot({label: value}) is expected


def test_a_node_that_says_nothing_is_on_demand() -> None:
    assert not is_spot({})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({OURS: "on-demand", KARPENTER: "spot", CAST: "true"}, False),
        ({OURS: "spot", EKS: "ON_DEMAND"}, True),
        ({KARPENTER: "on-demand", LIFECYCLE: "spot"}, False),
        ({SPOTINST: "od", CAST: "true"}, False),
        ({OURS: "whatever", KARPENTER: "spot"}, True),  # what we do not understand says nothing
        ({GKE_SPOT: "false", GKE_PROVISIONING: "preemptible"}, True),  # not spot may still be preemptible
        ({GKE_PREEMPTIBLE: "true", GKE_PROVISIONING: "standard"}, True),
        ({AKS: "regular", LIFECYCLE: "spot"}, True),
    ],
)
def test_of_labels_that_disagree_ours_wins_then_the_first_that_is_clear(labels: dict[str, str], expected: bool) -> None:
    assert is_spot(labels) is expected
    assert is_spot(dict(reversed(labels.items()))) is expected


def test_the_labels_for_affinity_terms_are_spelled_as_clouds_write_them() -> None:
    assert SPOT_LABELS[EKS] == ("SPOT",)
    assert SPOT_LABELS[GKE_PROVISIONING] == ("spot", "preemptible")
    assert set(SPOT_LABELS) == {
        OURS, KARPENTER, EKS, GKE_SPOT, GKE_PREEMPTIBLE, GKE_PROVISIONING, AKS, OKE, LIFECYCLE, SPOTINST, CAST
    }  # fmt: skip
    assert all(is_spot({label: value}) for label, values in SPOT_LABELS.items() for value in values)
