"""Opens a snapshot for a verb: reads it, says what it lacks, and makes a scheduler that decides on it."""

from __future__ import annotations

from collections import Counter as Tally

from wukong.api.kinds import Objects, plural
from wukong.cli.console import note
from wukong.cli.scheduling import Profiles, guess_version, read_version
from wukong.cluster import place_name, read_objects
from wukong.engine import Scheduler, Snapshot


def read_snapshot(path: str) -> Objects:
    """The objects, and a note on what is not there: we decide as if the cluster had none of it."""
    skipped: Tally[str] = Tally()
    objects = read_objects(path, skipped)
    lacking = [plural(kind) for kind in objects.lacking()]
    if lacking:
        note(f"{place_name(path)} holds no {', '.join(lacking)}; decided as if the cluster had none.")
    note_skipped(path, skipped)
    return objects


def note_skipped(path: str, skipped: Tally[str]) -> None:
    if skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        note(f"{place_name(path)}: left out what does not decide placement: {counts}.")


def make_scheduler(objects: Objects, kubernetes: str | None, scheduler_config: str | None) -> Scheduler:
    profiles = Profiles(scheduler_config)
    version = read_version(kubernetes, "--kubernetes") if kubernetes else guess_version(objects.nodes)
    return Scheduler(Snapshot.of(objects), profiles.of(version))
