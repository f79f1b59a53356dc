"""At rest every process has seen everything: all mirrors hold what the server holds."""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.store.documents import meta_of
from wukong.embedded.world.watch_selection import list_selected


def check(findings: Findings) -> None:
    world = findings.world
    for process in world.processes:
        for watch in process.watches.values():
            resource = watch.resource
            metas = (meta_of(document) for document in list_selected(world.server, watch))
            stored = {Key(meta.get("namespace", ""), meta["name"]): meta["resourceVersion"] for meta in metas}
            mirrored = {
                key: mirrored_object.metadata.resource_version
                for key, mirrored_object in process.state.objects.get(resource.group_kind, {}).items()
            }
            if mirrored != stored:
                wrong = sorted(key for key in {*mirrored, *stored} if mirrored.get(key) != stored.get(key))
                there, here = stored.get(wrong[0], "none"), mirrored.get(wrong[0], "none")
                text = f"at rest {process.name} has version {here} of it, the server {there}; {len(wrong)} such objects"
                findings.report(f"{resource.kind.lower()} {wrong[0]}", text)
