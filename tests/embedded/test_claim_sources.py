"""Where the data of a new claim comes from: the two fields that say it, as the API server makes them agree."""

from __future__ import annotations

import pytest

from wukong.api.meta import ObjectMeta
from wukong.api.storage import StorageClass
from wukong.embedded.store.admission import normalize_sources
from wukong.ports import Document
from wukong.semantics.volume_claims import DEFAULT_CLASS, find_default_class

CLAIM: Document = {"kind": "PersistentVolumeClaim", "name": "a"}
SNAPSHOT: Document = {"kind": "VolumeSnapshot", "name": "a", "apiGroup": "snapshot.storage.k8s.io"}
OTHER: Document = {"kind": "Populator", "name": "a", "apiGroup": "example.com"}


def normalized(before: Document | None = None, **spec: Document) -> Document:
    result: Document = normalize_sources({"spec": spec}, None if before is None else {"spec": before})["spec"]
    return result


@pytest.mark.parametrize("source", [CLAIM, SNAPSHOT])
def test_a_source_that_was_always_allowed_is_said_in_both_fields(source: Document) -> None:
    both = {"dataSource": source, "dataSourceRef": source}
    assert normalized(dataSource=source) == both
    assert normalized(dataSourceRef=source) == both
    assert normalized(dataSource=source, dataSourceRef=source) == both


def test_another_source_is_dropped_from_the_old_field_of_a_new_claim() -> None:
    assert normalized(dataSource=OTHER) == {}
    assert normalized(dataSource={**CLAIM, "apiGroup": "example.com"}) == {}
    assert normalized(dataSource={**SNAPSHOT, "kind": "PersistentVolumeClaim"}) == {}
    assert normalized(dataSourceRef=OTHER) == {"dataSource": OTHER, "dataSourceRef": OTHER}


@pytest.mark.parametrize("field", ["dataSource", "dataSourceRef"])
def test_a_claim_that_had_a_source_keeps_it(field: str) -> None:
    assert normalized({field: OTHER}, dataSource=OTHER) == {"dataSource": OTHER, "dataSourceRef": OTHER}
    assert normalized({}, dataSource=OTHER) == {}


def test_a_source_of_another_namespace_is_said_in_the_new_field_alone() -> None:
    elsewhere = {**CLAIM, "namespace": "shop"}
    assert normalized(dataSourceRef=elsewhere) == {"dataSourceRef": elsewhere}
    local = {**CLAIM, "namespace": ""}
    assert normalized(dataSourceRef=local) == {"dataSource": CLAIM, "dataSourceRef": local}
    assert normalized() == {}


def a_class(name: str, created: str | None = None, default: str | None = "true") -> StorageClass:
    annotations = {} if default is None else {DEFAULT_CLASS: default}
    return StorageClass(metadata=ObjectMeta(name=name, annotations=annotations, creation_timestamp=created))


def test_of_several_default_classes_the_newest_counts_and_then_the_first_by_name() -> None:
    def chosen(*classes: StorageClass) -> str:
        default = find_default_class(classes)
        return default.metadata.name if default is not None else ""

    assert chosen() == chosen(a_class("a", default=None), a_class("b", default="false")) == ""
    assert chosen(a_class("b", default=None), a_class("a")) == "a"
    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    assert chosen(a_class("a", old), a_class("b", new)) == chosen(a_class("b", new), a_class("a", old)) == "b"
    assert chosen(a_class("b", new), a_class("a", new)) == "a"
