"""The parts of what is built, one table each: who counts, what is rounded how, what is merged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.placement import SchedulingPolicy
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.api.vm import NAME_LABEL
from wukong.errors import InputError
from wukong.placement.free_labels import resources_of
from wukong.placement.vm import (
    VmSettings,
    build_priority_class,
    build_virtual_machine,
    free_amount,
    free_label_of,
    free_label_value,
    is_bootable,
    priority_class_name_of,
)
from wukong.placement.vm.merge import find_conflicts, merge_under
from wukong.semantics.label_syntax import is_label_key, is_label_value
from wukongs import a_wukong, build, template_spec_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
OWN = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {NAME_LABEL: "web"}}}

# ---- near and apart


@pytest.mark.parametrize(
    ("short", "explicit", "expected"),
    [
        (None, None, None),
        (False, None, None),
        (True, None, {REQUIRED: [OWN]}),
        (False, {"required": [TERM]}, {REQUIRED: [TERM]}),
        (True, {"required": [TERM]}, {REQUIRED: [TERM]}),
        (True, {"preferred": [{"weight": 5, "podAffinityTerm": TERM}]},
         {PREFERRED: [{"weight": 5, "podAffinityTerm": TERM}]}),
        (True, {}, None),  # explicit, and asks for nothing
    ],
)  # fmt: skip
def test_an_explicit_anti_affinity_counts_instead_of_the_short_one(short: Any, explicit: Any, expected: Any) -> None:
    spec: dict[str, Any] = {} if short is None else {"highAvailability": {"antiAffinity": short}}
    if explicit is not None:
        spec["scheduling"] = {"podAntiAffinity": explicit}
    assert template_spec_of(a_wukong(**spec)).get("affinity", {}).get("podAntiAffinity") == expected


def test_the_short_way_holds_beside_a_scheduling_block_that_says_nothing_of_it() -> None:
    wukong = a_wukong(highAvailability={"antiAffinity": True}, scheduling={"podAffinity": {"required": [TERM]}})
    affinity = template_spec_of(wukong)["affinity"]
    assert affinity == {"podAffinity": {REQUIRED: [TERM]}, "podAntiAffinity": {REQUIRED: [OWN]}}


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {"env": "prod"}}])
def test_no_selector_of_namespaces_and_an_empty_one_are_kept_apart(selector: Any) -> None:
    term = TERM if selector is None else {**TERM, "namespaceSelector": selector}
    wukong = a_wukong(scheduling={"podAffinity": {"required": [{**term, "namespaces": ["shop"]}]}})
    (built,) = template_spec_of(wukong)["affinity"]["podAffinity"][REQUIRED]
    assert built.get("namespaceSelector") == selector
    assert built["namespaces"] == ["shop"]


# ---- nodes


def required_terms(**scheduling: Any) -> list[Any]:
    node_affinity = template_spec_of(a_wukong(scheduling=scheduling))["affinity"]["nodeAffinity"]
    terms: list[Any] = node_affinity[REQUIRED]["nodeSelectorTerms"]
    return terms


def floors(*amounts: tuple[str, Any]) -> dict[str, Any]:
    return {"requiredResources": [{"resourceType": name, "minAvailable": least} for name, least in amounts]}


def test_a_floor_is_enough_or_nothing_known() -> None:
    assert required_terms(resourceAffinity=floors(("cpu", "2"))) == [
        {"matchExpressions": [{"key": "free.novasphere.dev/cpu", "operator": "Gt", "values": ["1999"]}]},
        {"matchExpressions": [{"key": "free.novasphere.dev/cpu", "operator": "DoesNotExist"}]},
    ]


def test_a_floor_of_nothing_is_none_and_of_two_the_larger_counts() -> None:
    assert "affinity" not in template_spec_of(a_wukong(scheduling={"resourceAffinity": floors(("cpu", 0))}))
    terms = required_terms(resourceAffinity=floors(("memory", "1Gi"), ("memory", "2Gi")))
    assert [term["matchExpressions"][0].get("values") for term in terms] == [["2047"], None]


def test_more_terms_than_anybody_should_try_are_not_built() -> None:
    wukong = a_wukong(scheduling={"resourceAffinity": floors(*((f"example.com/r{n}", 1) for n in range(16)))})
    with pytest.raises(InputError, match="expected at most 64"):
        build_virtual_machine(wukong, "web", VmSettings())


@pytest.mark.slow
@given(
    labels=st.dictionaries(
        st.sampled_from(["zone", "free.novasphere.dev/cpu", "free.novasphere.dev/memory"]), st.sampled_from("0159")
    ),
    cpu=st.integers(0, 9),
    memory=st.integers(0, 9),
    zones=st.lists(st.sampled_from("0159"), max_size=2),
)
def test_the_cross_product_means_what_was_asked(
    labels: dict[str, str], cpu: int, memory: int, zones: list[str]
) -> None:
    """One of the user's terms, and for each floor enough or nothing known: said plainly, and by the built terms."""
    users_terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in zones]
    affinity = floors(("cpu", f"{cpu}m"), ("memory", f"{memory}Mi"))
    wukong = a_wukong(scheduling={"nodeAffinity": {"required": users_terms}, "resourceAffinity": affinity})
    built = template_spec_of(wukong).get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    is_plainly_right = (not zones or labels.get("zone") in zones) and all(
        least == 0 or f"free.novasphere.dev/{name}" not in labels or int(labels[f"free.novasphere.dev/{name}"]) >= least
        for name, least in (("cpu", cpu), ("memory", memory))
    )
    assert _matches(built, labels) == is_plainly_right


def _matches(required: Any, labels: dict[str, str]) -> bool:
    """Kubernetes' semantics, for the operators used here."""
    if required is None:
        return True

    def holds(expression: dict[str, Any]) -> bool:
        value = labels.get(expression["key"])
        match expression["operator"]:
            case "In":
                return value in expression["values"]
            case "Gt":
                return value is not None and int(value) > int(expression["values"][0])
            case _:
                return value is None

    return any(all(map(holds, term["matchExpressions"])) for term in required["nodeSelectorTerms"])


@pytest.mark.parametrize(
    ("threshold", "label"),
    [("70%", "70"), ("70.5%", "71"), ("0%", "0"), ("0.001%", "1"), ("99.999%", "100"), ("100%", "100")],
)
def test_a_threshold_becomes_a_whole_number_that_no_calmer_node_fails(threshold: str, label: str) -> None:
    wukong = a_wukong(scheduling={"resourceAffinity": {"preferredMemory": {"weight": 7, "threshold": threshold}}})
    below, unknown = template_spec_of(wukong)["affinity"]["nodeAffinity"][PREFERRED]
    key = "usage.novasphere.dev/memory"
    assert below == {
        "weight": 7,
        "preference": {"matchExpressions": [{"key": key, "operator": "Lt", "values": [label]}]},
    }
    assert unknown == {"weight": 3, "preference": {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}}


def test_prefixes_are_settings() -> None:
    affinity = {"preferredCPU": {"weight": 2, "threshold": "5%"}, **floors(("storage", "1Gi"))}
    built = template_spec_of(
        a_wukong(scheduling={"resourceAffinity": affinity}), usage_prefix="u.example", free_prefix="f.example"
    )
    text = msgspec.json.encode(built).decode()
    assert '"u.example/cpu"' in text
    assert '"f.example/storage"' in text


# ---- free labels


@pytest.mark.parametrize(
    ("resource_type", "key"),
    [
        ("cpu", "free.novasphere.dev/cpu"),
        ("storage", "free.novasphere.dev/storage"),
        ("gpu", "free.novasphere.dev/gpu"),
        ("nvidia.com/A100", "free.novasphere.dev/nvidia.com_A100"),
    ],
)
def test_a_label_is_named_after_the_resource(resource_type: str, key: str) -> None:
    assert free_label_of(resource_type) == key


def test_long_names_stay_labels_and_stay_apart() -> None:
    long_names = [f"{'d' * 60}.example.com/{'r' * 60}{last}" for last in "ab"]
    keys = [free_label_of(name) for name in long_names]
    assert len(set(keys)) == 2
    assert all(is_label_key(key) for key in keys)


@given(
    asked=st.sampled_from(["0", "1", "1500m", "0.5", "4Gi", "4G", "1e3", "100Ki", "1", "1025Ki"]),
    free=st.integers(-(2**40), 2**60),
    resource_type=st.sampled_from(["cpu", "memory", "storage", "gpu", "example.com/fpga"]),
)
def test_a_label_that_fits_a_floor_never_promises_what_is_not_there(asked: str, free: int, resource_type: str) -> None:
    value = free_label_value(resource_type, free)
    assert is_label_value(value)
    resource = resources_of(resource_type)[0]
    if int(value) >= free_amount(resource_type, asked) > 0:
        assert free >= scheduler_amount(resource, parse_quantity(asked))


# ---- priority


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (None, ""),
        ({}, ""),
        ({"schedulerName": "x"}, ""),
        ({"preemptionPolicy": "PreemptLowerPriority"}, ""),
        ({"priority": 100}, "wukong-100"),
        ({"priority": 100, "preemptionPolicy": "PreemptLowerPriority"}, "wukong-100"),
        ({"priority": 100, "preemptionPolicy": "Never"}, "wukong-100-never"),
        ({"priority": 0}, "wukong-0"),
        ({"preemptionPolicy": "Never"}, "wukong-0-never"),
        ({"priority": -5}, "wukong-minus-5"),
    ],
)
def test_one_class_per_value_and_preemption_policy(policy: Any, name: str) -> None:
    read = None if policy is None else msgspec.convert(policy, SchedulingPolicy)
    assert priority_class_name_of(read) == name
    if read is not None and name:
        built = build_priority_class(read)
        assert built["metadata"]["name"] == name
        assert built["value"] == policy.get("priority", 0)
        assert built["preemptionPolicy"] == policy.get("preemptionPolicy", "PreemptLowerPriority")


# ---- vmTemplate


def test_lists_of_named_things_are_merged_by_name_and_others_stay_ours() -> None:
    ours = {"disks": [{"name": "a", "disk": {"bus": "virtio"}}], "tolerations": [{"key": "x"}], "deep": {"one": 1}}
    template = {
        "disks": [{"name": "b"}, {"name": "a", "bootOrder": 1}],
        "tolerations": [{"key": "y"}],
        "deep": {"one": 2, "two": 2},
        "new": True,
    }
    assert merge_under(ours, template) == {
        "disks": [{"name": "a", "disk": {"bus": "virtio"}, "bootOrder": 1}, {"name": "b"}],
        "tolerations": [{"key": "x"}],
        "deep": {"one": 1, "two": 2},
        "new": True,
    }
    assert [conflict.partition(":")[0] for conflict in find_conflicts(ours, template, "$")] == [
        "$.tolerations",
        "$.deep.one",
    ]


def test_a_template_that_says_the_same_is_no_conflict() -> None:
    wukong = a_wukong(cpu=2, vmTemplate={"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}})
    assert build(wukong)["spec"]["template"]["spec"]["domain"]["cpu"] == {"cores": 2}


# ---- what to boot from


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, False),
        ({"disks": [{"name": "i", "cloudInit": {"userData": "x"}}]}, False),
        ({"disks": [{"name": "r", "containerDisk": {"image": "x"}}]}, True),
        ({"disks": [{"name": "r", "dataVolume": {"name": "x"}}]}, True),
        ({"disks": [{"name": "r", "claim": {"claimName": "x"}}]}, True),
        ({"vmTemplate": {"spec": {"template": {"spec": {"volumes": [{"name": "v", "ephemeral": {}}]}}}}}, True),
        ({"vmTemplate": {"spec": {"template": {"spec": {"domain": {"firmware": {"kernelBoot": {}}}}}}}}, True),
        (
            {
                "vmTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "domain": {"devices": {"interfaces": [{"name": "n", "bridge": {}, "bootOrder": 1}]}},
                                "networks": [{"name": "n", "pod": {}}],
                            }
                        }
                    }
                }
            },
            True,
        ),
    ],
)
def test_a_machine_needs_something_to_boot_from(spec: dict[str, Any], expected: bool) -> None:
    assert is_bootable(a_wukong(**spec)) is expected
