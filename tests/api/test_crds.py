"""The CRDs are structural, bounded where CEL looks, and say what the structs say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml
from msgspec import Struct

from wukong.api.crds import Schema, build_crds, schema_of
from wukong.api.kinds import KINDS
from wukong.api.meta import Base
from wukong.api.placement import APPLIES, MODES, RULE_TYPES
from wukong.api.policy_parts import FALLBACKS, PREEMPTION_POLICIES, STRATEGIES
from wukong.api.vm import BUSES, EVICTION_STRATEGIES, RESTART_POLICIES, RUN_STRATEGIES

CRDS = {document["spec"]["names"]["kind"]: document for document in build_crds()}
FORBIDDEN = {"$ref", "title", "anyOf", "allOf", "oneOf", "not", "nullable"}


def root(kind: str) -> Schema:
    return cast(Schema, CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def walk(schema: Schema, path: str = "$") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, entry in schema.get("properties", {}).items():
        yield from walk(entry, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


PARTS = [(f"{kind} {path}", schema) for kind in CRDS for path, schema in walk(root(kind))]


def field(path: str, kind: str = "PlacementPolicy") -> Schema:
    return dict(walk(root(kind)))[path]


def test_every_kind_of_ours_in_the_table_has_a_definition() -> None:
    ours = {entry.resource.kind for entry in KINDS if entry.origin == "ours"}
    assert ours == CRDS.keys()


def find_structural_problems(place: str, schema: Schema) -> Iterator[str]:
    if not (schema.get("type") or schema.get("x-kubernetes-int-or-string")):
        yield "no type"
    yield from sorted(FORBIDDEN & schema.keys())
    if schema.get("type") == "array" and "items" not in schema:
        yield "a list without items"
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    is_closed = "properties" in schema or place.endswith("metadata")
    if schema.get("type") == "object" and not is_open and not is_closed:
        yield "an object without properties"


def find_missing_bounds(schema: Schema) -> Iterator[str]:
    wanted = {"array": ("maxItems", "x-kubernetes-list-type"), "string": ("maxLength",)}.get(schema.get("type", ""), ())
    yield from (bound for bound in wanted if not schema.get(bound))
    if "additionalProperties" in schema and not schema.get("maxProperties"):
        yield "maxProperties"


def test_every_part_is_structural() -> None:
    problems = [(place, problem) for place, schema in PARTS for problem in find_structural_problems(place, schema)]
    assert len(PARTS) > 700
    assert problems == []


@pytest.mark.parametrize(
    "schema", [{}, {"type": "array"}, {"type": "object"}, {"type": "string", "nullable": True}], ids=str
)
def test_a_part_that_is_not_structural_is_found(schema: Schema) -> None:
    assert len(list(find_structural_problems("$.spec.a", schema))) == 1


def test_everything_below_spec_is_bounded_so_that_cel_has_a_cost() -> None:
    below_spec = [(place, schema) for place, schema in PARTS if ".spec" in place]
    assert len(below_spec) > 500
    assert [(place, bound) for place, schema in below_spec for bound in find_missing_bounds(schema)] == []


def test_a_part_without_bounds_is_found() -> None:
    assert list(find_missing_bounds({"type": "array"})) == ["maxItems", "x-kubernetes-list-type"]
    assert list(find_missing_bounds({"type": "string", "maxLength": 0})) == ["maxLength"]
    assert list(find_missing_bounds({"type": "object", "additionalProperties": {}})) == ["maxProperties"]


def test_a_default_is_written_only_where_it_is_asked_for() -> None:
    assert [place for place, schema in PARTS if "default" in schema] == [
        "PlacementPolicy $.spec.mode",
        "ClusterPlacementPolicy $.spec.mode",
        "Rollout $.spec.replicas",
    ]


def test_every_field_is_explained() -> None:
    """`kubectl explain` shows it; the head of an object and entries of lists and maps explain themselves."""
    silent = [place for place, schema in PARTS if not schema.get("description")]
    entries = (place for place in silent if not place.endswith(("[]", "{}")))
    assert [
        place for place in entries if not (" $.metadata" in place or place.endswith((" $.kind", ".apiVersion")))
    ] == []


def test_every_rule_says_what_is_expected() -> None:
    rules = [rule for _, schema in PARTS for rule in schema.get("x-kubernetes-validations", [])]
    assert len(rules) > 20
    assert [rule for rule in rules if not rule["message"].startswith("expected ")] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("$.spec.capacity.strategy", STRATEGIES),
        ("$.spec.capacity.fallback", FALLBACKS),
        ("$.spec.mode", MODES),
        ("$.spec.apply", APPLIES),
        ("$.spec.priority.preemptionPolicy", PREEMPTION_POLICIES),
        ("$.spec.scheduling.schedulingPolicy.rules[].type", RULE_TYPES),
        ("$.spec.scheduling.schedulingPolicy.preemptionPolicy", PREEMPTION_POLICIES),
    ],
)
def test_a_choice_is_the_one_the_structs_name(path: str, words: tuple[str, ...]) -> None:
    (rule,) = field(path)["x-kubernetes-validations"]
    for word in words:
        assert f"'{word}'" in rule["rule"]
        assert word in rule["message"]
        assert len(word) <= field(path)["maxLength"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("$.spec.runStrategy", RUN_STRATEGIES),
        ("$.spec.evictionStrategy", EVICTION_STRATEGIES),
        ("$.spec.restartPolicy", RESTART_POLICIES),
        ("$.spec.disks[].bus", BUSES),
    ],
)
def test_a_choice_of_a_wukong_is_the_one_the_structs_name(path: str, words: tuple[str, ...]) -> None:
    (rule,) = field(path, "Wukong")["x-kubernetes-validations"]
    assert [word for word in words if f"'{word}'" not in rule["rule"] or word not in rule["message"]] == []


def test_the_two_kinds_differ_by_scope_names_and_the_selector_of_namespaces() -> None:
    namespaced, cluster_wide = (CRDS[kind]["spec"] for kind in ("PlacementPolicy", "ClusterPlacementPolicy"))
    assert (namespaced["scope"], cluster_wide["scope"]) == ("Namespaced", "Cluster")
    assert (namespaced["names"]["shortNames"], cluster_wide["names"]["shortNames"]) == (["pp"], ["cpp"])
    assert root("ClusterPlacementPolicy")["properties"]["spec"]["properties"].keys() - root("PlacementPolicy")[
        "properties"
    ]["spec"]["properties"].keys() == {"namespaceSelector"}


def test_conditions_are_a_map_by_type() -> None:
    conditions = field("$.status.conditions")
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_as_yaml_they_need_no_anchors() -> None:
    text = yaml.safe_dump_all(build_crds())
    assert "&id" not in text


def test_a_field_without_a_default_is_required_and_one_that_may_be_none_is_not() -> None:
    class Small(Base):
        """Small."""

        size_percent: int
        amounts: dict[str, float] | None = None
        is_on: bool = False

    assert schema_of(Small) == {
        "type": "object",
        "description": "Small.",
        "properties": {
            "sizePercent": {"type": "integer"},
            "amounts": {"type": "object", "additionalProperties": {"type": "number"}},
            "isOn": {"type": "boolean"},
        },
        "required": ["sizePercent"],
    }


@pytest.mark.parametrize("unknown", [Any, bytes, int | bool | str])
def test_a_type_without_a_schema_is_refused(unknown: Any) -> None:
    odd_struct = type("Odd", (Struct,), {"__annotations__": {"field": unknown}})
    with pytest.raises(TypeError, match="no schema is known"):
        schema_of(odd_struct)
