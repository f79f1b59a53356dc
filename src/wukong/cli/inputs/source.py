"""Where a verb gets its cluster from: a snapshot, or the current context; what it lacks is said."""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from typing import NamedTuple

from wukong.api.kinds import KINDS
from wukong.api.objects import Objects
from wukong.cli.inputs.scheduler import Profiles, guess_version, read_version
from wukong.cli.views.console import note, progress
from wukong.cluster import place_name, read_objects
from wukong.engine import Scheduler, Snapshot


class Source(NamedTuple):
    """What the shared options say about the cluster."""

    snapshot: str | None  # None: the live cluster
    kubeconfig: str = ""
    context: str = ""

    @property
    def place(self) -> str:
        return place_name(self.snapshot) if self.snapshot else "the cluster"


class Found(NamedTuple):
    objects: Objects
    version: str = ""  # what a live server calls itself; "" for a snapshot


def read_source(source: Source) -> Found:
    """The objects, and a note on what is not there: we decide as if the cluster had none of it."""
    if source.snapshot is None:
        found = asyncio.run(read_live(source))
    else:
        skipped: Tally[str] = Tally()
        found = Found(read_objects(source.snapshot, skipped))
        note_skipped(source.snapshot, skipped)
    missing_kinds = [kind.resource.plural for kind in found.objects.missing_kinds() if kind.is_built_in]
    if missing_kinds:
        note(f"{source.place} holds no {', '.join(missing_kinds)}; decided as if the cluster had none.")
    return found


async def read_live(source: Source) -> Found:
    """Everything that decides placement, read from the cluster of the kubeconfig or of this pod."""
    from wukong.cluster.capture import capture
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    with progress("Reading the cluster") as tell:
        async with Kube(load(source.kubeconfig, source.context)) as kube:
            return Found(await capture(kube, tell, note), await kube.version())


def note_skipped(path: str, skipped: Tally[str]) -> None:
    played = {kind.resource.kind for kind in KINDS if kind.loads and not kind.decides}  # those are for sim run
    others = {kind: count for kind, count in skipped.items() if kind not in played}
    if others:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        note(f"{place_name(path)}: left out what does not decide placement: {counts}.")


def make_scheduler(
    found: Found, kubernetes: str | None, scheduler_config: str | None, *, takes_extenders: bool = False
) -> Scheduler:
    profiles = Profiles(scheduler_config, takes_extenders=takes_extenders)
    if kubernetes:
        version = read_version(kubernetes, "--kubernetes")
    elif found.version:
        version = read_version(found.version, "the cluster's version")
    else:
        version = guess_version(found.objects.nodes)
    return Scheduler(Snapshot.of(found.objects), profiles.of(version))
