"""Properties of what is built, over many made-up Wukongs that use every field."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from random_wukongs import Manifest, random_wukong
from wukong.api.vm import NAME_LABEL, Wukong, WukongSpec, vm_names_of
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import VmSettings, build_virtual_machine, find_change_effects, find_wukong_problems
from wukong.placement.vm.affinity import PREFERRED, REQUIRED

SEEDS = range(200)
LABELS, EXTENDER = VmSettings(), VmSettings(resource_affinity="extender")


@cache
def manifest(seed: int) -> Manifest:
    return random_wukong(seed)


def wukong_of(seed: int) -> Wukong:
    return msgspec.convert(manifest(seed), Wukong, strict=True)


def paths_of(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield f"{path}.{name}"
            yield from paths_of(entry, f"{path}.{name}")
    elif isinstance(value, list):
        for entry in value:
            yield from paths_of(entry, f"{path}[]")


def fields_of(struct: inspect.Type, path: str = "") -> Iterator[str]:
    match struct:
        case inspect.Metadata(type=inner):
            yield from fields_of(inner, path)
        case inspect.UnionType(types=types):
            for inner in types:
                yield from fields_of(inner, path)
        case inspect.ListType(item_type=item):
            yield from fields_of(item, f"{path}[]")
        case inspect.StructType(fields=fields):
            for field in fields:
                yield f"{path}.{field.encode_name}"
                yield from fields_of(field.type, f"{path}.{field.encode_name}")


def test_every_field_is_used_by_some_of_them() -> None:
    used = {path for seed in SEEDS for path in paths_of(manifest(seed)["spec"])}
    assert set(fields_of(inspect.type_info(WukongSpec))) - used == set()


def test_the_same_seed_makes_the_same_wukong() -> None:
    assert [random_wukong(seed) for seed in range(20)] == [manifest(seed) for seed in range(20)]


@pytest.mark.parametrize("is_placeable", [False, True])
def test_none_has_a_problem(is_placeable: bool) -> None:
    problems = {
        seed: found
        for seed in SEEDS
        if (
            found := find_wukong_problems(
                msgspec.convert(random_wukong(seed, is_placeable=is_placeable), Wukong), BUILT_IN
            )
        )
    }
    assert problems == {}


@pytest.mark.parametrize("settings", [LABELS, EXTENDER], ids=["labels", "extender"])
def test_every_rule_arrives_in_the_template(settings: VmSettings) -> None:
    for seed in SEEDS:
        wukong = wukong_of(seed)
        spec, scheduling = manifest(seed)["spec"], manifest(seed)["spec"].get("scheduling", {})
        machine = build_virtual_machine(wukong, wukong.metadata.name, settings)
        template = machine["spec"]["template"]["spec"]
        affinity = template.get("affinity", {})
        near = scheduling.get("podAffinity", {})
        assert affinity.get("podAffinity", {}).get(REQUIRED, []) == near.get("required", [])
        assert affinity.get("podAffinity", {}).get(PREFERRED, []) == near.get("preferred", [])
        apart = _expected_anti_affinity(manifest(seed))
        assert affinity.get("podAntiAffinity", {}).get(REQUIRED, []) == apart.get("required", [])
        assert affinity.get("podAntiAffinity", {}).get(PREFERRED, []) == apart.get("preferred", [])
        for name in ("nodeSelector", "tolerations"):
            assert bool(template.get(name)) == bool(scheduling.get(name))
            assert template.get(name, scheduling.get(name)) == scheduling.get(name)
        assert len(template.get("topologySpreadConstraints", [])) == len(
            scheduling.get("topologySpreadConstraints", [])
        )
        preferred = affinity.get("nodeAffinity", {}).get(PREFERRED, [])
        users_own = scheduling.get("nodeAffinity", {}).get("preferred", [])
        assert preferred[: len(users_own)] == users_own
        assert template["domain"]["cpu"]["cores"] == spec.get("cpu", 1)
        assert machine["spec"]["template"]["metadata"]["labels"] == {
            **spec.get("labels", {}),
            NAME_LABEL: wukong.metadata.name,
        }


def _expected_anti_affinity(document: Manifest) -> Manifest:
    spec = document["spec"]
    if "podAntiAffinity" in spec.get("scheduling", {}):
        explicit: Manifest = spec["scheduling"]["podAntiAffinity"]
        return explicit
    if not spec.get("highAvailability", {}).get("antiAffinity"):
        return {}
    own_pods = {"matchLabels": {NAME_LABEL: document["metadata"]["name"]}}
    return {"required": [{"topologyKey": "kubernetes.io/hostname", "labelSelector": own_pods}]}


def test_every_alternative_of_the_user_is_in_some_required_term_and_no_other() -> None:
    for seed in SEEDS:
        wukong = wukong_of(seed)
        users_terms = manifest(seed)["spec"].get("scheduling", {}).get("nodeAffinity", {}).get("required", [])
        template = build_virtual_machine(wukong, "vm", LABELS)["spec"]["template"]["spec"]
        required = template.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {})
        terms = required.get("nodeSelectorTerms", [])
        for term in terms:
            assert any(_includes(term, users_term) for users_term in users_terms) or not users_terms
        for users_term in users_terms:
            assert any(_includes(term, users_term) for term in terms)


def _includes(term: Manifest, part: Manifest) -> bool:
    expressions = part.get("matchExpressions", [])
    return bool(
        term.get("matchFields", []) == part.get("matchFields", [])
        and term.get("matchExpressions", [])[: len(expressions)] == expressions
    )


def test_in_the_other_modes_no_term_speaks_of_our_labels() -> None:
    for seed in SEEDS:
        machine = build_virtual_machine(wukong_of(seed), "vm", EXTENDER)
        assert b"novasphere.dev/cpu" not in msgspec.json.encode(machine)
        assert b"free.novasphere.dev" not in msgspec.json.encode(machine)


def test_building_twice_is_the_same_and_means_no_change() -> None:
    for seed in SEEDS:
        first, second = (build_virtual_machine(wukong_of(seed), "vm", LABELS) for _ in range(2))
        assert msgspec.json.encode(first) == msgspec.json.encode(second)
        assert find_change_effects(first["spec"], second["spec"]) == []


def test_the_machines_of_one_wukong_differ_by_name_alone() -> None:
    for seed in SEEDS:
        wukong = wukong_of(seed)
        machines = [build_virtual_machine(wukong, name, LABELS) for name in vm_names_of(wukong)]
        assert [machine["metadata"].pop("name") for machine in machines] == vm_names_of(wukong)
        assert all(machine == machines[0] for machine in machines)
