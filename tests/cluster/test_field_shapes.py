"""Which keys of a document are fields and which are data, also where no struct describes it."""

from __future__ import annotations

import pytest

from wukong.api.core import PodTemplateSpec
from wukong.cluster.field_shapes import DATA, UNKNOWN, shape_of_document, shape_of_struct, shape_within
from wukong.placement.rules import BUILT_IN


@pytest.mark.parametrize("field", ["labels", "matchLabels", "nodeSelector"])
def test_maps_of_labels_are_data_also_where_no_struct_says_so(field: str) -> None:
    assert shape_within(UNKNOWN, {}, field) == DATA
    assert shape_within({}, {}, field) == DATA
    assert shape_within({field: {"a": UNKNOWN}}, {}, field) == {"a": UNKNOWN}, "a struct knows better"


def test_templates_of_jobs_and_revisions_are_those_of_pods() -> None:
    assert shape_within(UNKNOWN, {}, "template") == shape_of_struct(PodTemplateSpec)
    assert shape_within({"template": DATA}, {}, "template") == DATA


def test_the_config_of_a_built_in_rule_has_its_own_shape() -> None:
    for name, rule in BUILT_IN.items():
        assert shape_within(UNKNOWN, {"name": name}, "config") == shape_of_struct(rule.config)
    assert shape_within(UNKNOWN, {"name": "another"}, "config") == UNKNOWN


def test_a_document_has_the_shape_of_its_kind_or_none() -> None:
    shape = shape_of_document({"apiVersion": "v1", "kind": "Pod"})
    assert isinstance(shape, dict)
    assert isinstance(spec := shape["spec"], dict)
    assert spec["nodeSelector"] == DATA
    for other in ({}, {"kind": "Pod", "apiVersion": "example.com/v1"}, {"kind": None, "apiVersion": None}):
        assert shape_of_document(other) == UNKNOWN
