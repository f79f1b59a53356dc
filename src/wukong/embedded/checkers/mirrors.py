"""At rest every process has seen everything: all mirrors hold what the server holds."""

from __future__ import annotations

from collections.abc import Mapping

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.store.documents import meta_of
from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_selection import list_selected
from wukong.embedded.world.world import World
from wukong.errors import Gone
from wukong.ports import EVERYTHING
from wukong.state.controller import Watch

_NOTHING: Mapping[Key, Object] = {}


def check(findings: Findings, since: int | None = None) -> None:
    """`since`: the version up to which a process that sees every write at once is known to have seen all of them."""
    world = findings.world
    for process in world.processes:
        for name, watch in process.watches.items():
            written = _find_written(world, name, watch, since)
            mirrored = _read_mirror(process, watch, written)
            stored = _read_stored(world, name, watch, written)
            if mirrored != stored:
                wrong = sorted(key for key in {*mirrored, *stored} if mirrored.get(key) != stored.get(key))
                there, here = stored.get(wrong[0], "none"), mirrored.get(wrong[0], "none")
                text = f"at rest {process.name} has version {here} of it, the server {there}; {len(wrong)} such objects"
                findings.report(f"{watch.resource.kind.lower()} {wrong[0]}", text)


def _find_written(world: World, name: str, watch: Watch, since: int | None) -> set[Key] | None:
    """The objects of a kind that were written since then; None if all have to be compared."""
    if since is None or watch.selection != EVERYTHING:
        return None
    try:
        return {change.key for change in world.server.database.changes_since(name, since)}
    except Gone:
        return None


def _read_mirror(process: Process, watch: Watch, keys: set[Key] | None) -> dict[Key, str | None]:
    """What it has seen of each, also of those that it cannot read."""
    group_kind, state = watch.resource.group_kind, process.state
    versions: dict[Key, str | None] = {}
    mirrors: tuple[Mapping[Key, Object], ...] = (
        state.objects.get(group_kind, _NOTHING),
        state.unreadable.get(group_kind, _NOTHING),
    )
    for objects in mirrors:
        if keys is None:
            versions.update((key, subject.metadata.resource_version) for key, subject in objects.items())
        else:
            present = ((key, objects.get(key)) for key in keys)
            versions.update((key, subject.metadata.resource_version) for key, subject in present if subject is not None)
    return versions


def _read_stored(world: World, name: str, watch: Watch, keys: set[Key] | None) -> dict[Key, str | None]:
    if keys is None:
        metas = map(meta_of, list_selected(world.server, watch))
        return {Key(meta.get("namespace", ""), meta["name"]): meta["resourceVersion"] for meta in metas}
    documents = ((key, world.server.database.get(name, key)) for key in keys)
    return {key: meta_of(document)["resourceVersion"] for key, document in documents if document is not None}
