"""The table of kinds answers by what it holds now, whatever it was asked before."""

from __future__ import annotations

from api.kind_entries import FILE, build_text
from wukong.api import kind_table
from wukong.api.kind_table import Kind, KindTable
from wukong.api.meta import Object
from wukong.api.resources import Resource


class Engine(Object):
    pass


def an_engine() -> Kind:
    return Kind(resource=Resource("Engine", group="apps", plural="engines"), struct=Engine)


def test_a_kind_that_came_or_went_since_it_was_asked_for_is_found_or_not() -> None:
    table, entry = KindTable(), an_engine()
    for version in ("apps/v1", "apps/v2", ""):
        assert table.of_document("Engine", version) is None
    table.add(entry)
    for version in ("apps/v1", "apps/v2", ""):
        assert table.of_document("Engine", version) is entry
        assert table.of_document("Engine", version) is entry
        assert table.group_kind_named("Engine", version) == "Engine.apps"
    assert table.of_document("Engine", "other/v1") is None
    table.remove(entry)
    assert table.of_document("Engine", "apps/v1") is None


def test_what_a_struct_is_of_changes_with_the_table() -> None:
    class Diesel(Engine):
        pass

    table, entry = KindTable(), an_engine()
    diesel = Kind(resource=Resource("Diesel", group="apps", plural="diesels"), struct=Diesel)
    table.add(entry)
    assert table.group_kinds[Engine] == table.group_kinds[Diesel] == "Engine.apps"
    table.add(diesel)
    assert (table.group_kinds[Engine], table.group_kinds[Diesel]) == ("Engine.apps", "Diesel.apps")
    table.remove(diesel)
    assert table.group_kinds[Diesel] == "Engine.apps"


def test_no_more_versions_are_remembered_than_it_says() -> None:
    table, entry = KindTable(), an_engine()
    table.add(entry)
    for number in range(kind_table._MOST_DOCUMENTS + 10):
        assert table.of_document("Engine", f"apps/v{number}") is entry
    assert len(table._by_document) <= kind_table._MOST_DOCUMENTS


def test_the_entries_are_as_they_were() -> None:
    """After a change that is meant, `PYTHONPATH=src:tests python -m api.kind_entries`."""
    assert build_text() == FILE.read_text("utf-8")
