"""After each small story every object of the cluster is, field by field, what it was when it was last looked at."""

from __future__ import annotations

import pytest
import yaml

from embedded.golden_documents import FOLDER, STORIES, list_documents, write
from wukong.ports import Document


def read_golden(name: str) -> list[Document]:
    return list(yaml.load_all((FOLDER / f"{name}.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader))


@pytest.mark.parametrize("name", STORIES)
def test_a_story_ends_with_the_objects_of_its_golden_file(name: str) -> None:
    documents = list(yaml.load_all(write(list_documents(STORIES[name]())), Loader=yaml.CSafeLoader))
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    golden = {(document["kind"], document["metadata"]["name"]): document for document in read_golden(name)}
    assert names == list(golden)
    for document in documents:
        assert document == golden[document["kind"], document["metadata"]["name"]]


def test_every_golden_file_has_its_story() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(STORIES)
