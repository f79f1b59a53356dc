"""At rest every process has seen everything: all mirrors say what the server says."""

from __future__ import annotations

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.store.documents import meta_of
from wukong.embedded.world.watch_selection import list_selected


def check(desk: Findings) -> None:
    world = desk.world
    for process in world.processes:
        for watch in process.watches.values():
            resource = watch.resource
            stored = {
                Key(meta_of(each).get("namespace", ""), meta_of(each)["name"]): meta_of(each)["resourceVersion"]
                for each in list_selected(world.server, watch)
            }
            held = {key: _version(found) for key, found in process.state.objects.get(resource.kind, {}).items()}
            if held != stored:
                wrong = sorted(key for key in {*held, *stored} if held.get(key) != stored.get(key))
                there, here = stored.get(wrong[0], "none"), held.get(wrong[0], "none")
                told = f"at rest {process.name} has version {here} of it, the server {there}; {len(wrong)} such objects"
                desk.note(f"{resource.kind.lower()} {wrong[0]}", told)


def _version(found: Object) -> str | None:
    return found.metadata.resource_version
