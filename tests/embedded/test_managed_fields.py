"""Who owns which field is the same whether it is asked after every write or only in the end."""

from __future__ import annotations

from random import Random

import pytest

from embedded.random_patches import a_map, a_patch, a_workload, an_apply
from embedded.store_fixtures import CONFIG_MAPS, DEPLOYMENTS, NAMESPACE, a_server, key, merge_patch
from wukong.embedded.store.documents import copy_document, encode_document
from wukong.embedded.store.ownership.managed_fields import MOST_PENDING, ManagedFields
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

KINDS = {"ConfigMap": CONFIG_MAPS, "Deployment": DEPLOYMENTS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_owners_read_in_the_end_are_those_read_after_every_write(kind: str, seed: int) -> None:
    random = Random(seed)
    first = a_map("it") if kind == "ConfigMap" else a_workload(random, "it")
    read_often, read_once = a_server(definitions=[]), a_server(definitions=[])
    document = read_often.create(KINDS[kind], first, NAMESPACE)
    read_once.create(KINDS[kind], first, NAMESPACE)
    for _ in range(3 * MOST_PENDING):
        patch = an_apply(random, kind, "it") if random.random() < 0.05 else a_patch(random, kind, document)
        answers = []
        for server in (read_often, read_once):
            try:
                server.patch(KINDS[kind], key("it"), patch)
                answers.append("")
            except ClusterError as error:
                answers.append(str(error))
        assert answers[0] == answers[1]
        document = read_often.get(KINDS[kind], key("it"))
        assert len(document["metadata"]["managedFields"]) > 0
    assert copy_document(read_once.get(KINDS[kind], key("it"))) == copy_document(document)


def test_an_earlier_version_keeps_the_owners_it_had() -> None:
    server = a_server()
    first = server.create(CONFIG_MAPS, a_map("it"), NAMESPACE)
    second = server.patch(CONFIG_MAPS, key("it"), PatchBody("merge", {"data": {"new": "x"}}, manager="alice"))
    assert managers_of(second) == ["alice", "wukong"]
    assert managers_of(first) == ["wukong"]


def test_nobody_owns_what_was_removed_and_then_there_are_no_managed_fields() -> None:
    server = a_server()
    server.create(CONFIG_MAPS, {"metadata": {"name": "it"}, "data": {"key": "text"}}, NAMESPACE)
    emptied = server.patch(CONFIG_MAPS, key("it"), merge_patch(data=None))
    assert isinstance(emptied["metadata"]["managedFields"], ManagedFields)
    assert "managedFields" not in copy_document(emptied)["metadata"]


def test_an_object_written_for_ever_keeps_only_a_few_of_its_versions() -> None:
    server = a_server()
    document = server.create(CONFIG_MAPS, a_map("it"), NAMESPACE)
    for number in range(5 * MOST_PENDING):
        document = server.patch(CONFIG_MAPS, key("it"), merge_patch(data={"number": str(number)}))
    assert count_pending(document) <= MOST_PENDING


def test_what_is_no_sequence_cannot_be_encoded() -> None:
    with pytest.raises(TypeError, match="JSON has no object"):
        encode_document({"metadata": {"managedFields": object()}})


def managers_of(document: Document) -> list[str]:
    return [entry["manager"] for entry in document["metadata"]["managedFields"]]


def count_pending(document: Document | None) -> int:
    """How many versions are kept for the sake of their owners."""
    count = 0
    while document is not None and isinstance(fields := document["metadata"].get("managedFields"), ManagedFields):
        write = fields._write
        document, count = (write.before, count + 1) if write is not None else (None, count)
    return count
