"""What `wukong sim run` plays: a scenario's file, a snapshot to begin with (-s), manifests to apply to it (-f).

Reads and checks files, says what had to be left out or taken for granted; plays nothing.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from wukong.app.snapshots import load
from wukong.cli.inputs.source import note_skipped
from wukong.cli.views.console import busy, count, note
from wukong.cluster import place_name, read_text
from wukong.cluster.reduction import reduce_document
from wukong.cluster.snapshot_documents import read_documents
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.scenario.format.read import parse_all, read_manifests
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import parse_time
from wukong.errors import InputError
from wukong.ports import Document

F = TypeVar("F", bound=Callable[..., Any])


def add_files_option(command: F) -> F:
    return click.option(
        "--files-below",
        metavar="FOLDER",
        help="The scenario's files: may be below this folder, too.  [default: below the scenario's own only]",
    )(command)


def read_scenario_file(path: str, files_below: str | None = None) -> Scenario:
    """The scenario, with the documents of its `files` before its own manifests.

    Those must be below the scenario's folder, or `files_below`: who plays another's scenario does not mean to show it
    anything else on the disk.
    """
    name, data = place_name(path), bytes(read_text(path))
    try:
        scenario = read_scenario(data)
    except InputError as error:
        if _is_manifest(data):
            raise InputError(f"{name}: expected a scenario, got a Kubernetes manifest. Give it with -f.") from None
        raise error.at(name) from None
    folder = Path(path).parent
    problems = [
        f"{name}: $.files[{index}]: expected a file below {folder}, got {file!r:.200}. Move it there, or name a folder "
        "that it is below with --files-below."
        for index, file in enumerate(scenario.files)
        if not _is_below(folder / file, [str(folder), *([files_below] if files_below else [])])
    ]
    if problems:
        raise InputError(*problems)
    scenario.manifests = [*_read_manifest_files([str(folder / file) for file in scenario.files]), *scenario.manifests]
    return scenario


def _is_below(file: Path, folders: Sequence[str]) -> bool:
    """Tell whether a file is below one of the folders once links are followed."""
    try:
        return any(file.resolve().is_relative_to(Path(folder).resolve()) for folder in folders)
    except (OSError, RuntimeError, ValueError):  # links in a circle, a zero byte
        return False


def read_start(path: str, scenario: Scenario, changes: Sequence[str]) -> LoadedSnapshot:
    """The snapshot made fit to be played on; `scenario` gets what -f names before its own manifests."""
    skipped: Tally[str] = Tally()
    with busy(f"Reading {place_name(path)} …"):
        snapshot = read_documents(path, skipped)
        try:
            start = load(snapshot.items, parse_time(snapshot.taken_at) if snapshot.taken_at else None)
        except InputError as error:
            raise error.at(place_name(path)) from None
    note_skipped(path, skipped)
    for remark in start.notes:
        note(f"{place_name(path)}: {remark}")
    manifests = _read_manifest_files(changes)
    if snapshot.is_reduced and (detailed := [manifest for manifest in manifests if _has_more_details(manifest)]):
        names = ", ".join(f"{manifest['kind']} {manifest['metadata']['name']}" for manifest in detailed[:3])
        note(
            f"{place_name(path)} keeps only what decides placement: whether environment, arguments, probes or "
            f"annotations of {names} change is not known; taken as unchanged. kubectl get -o json keeps all."
        )
    scenario.manifests = [*(map(reduce_document, manifests) if snapshot.is_reduced else manifests), *scenario.manifests]
    return start


def add_changes(scenario: Scenario, changes: Sequence[str]) -> None:
    """What -f names is applied first, to a cluster that is empty but for the scenario's nodes."""
    scenario.manifests = [*_read_manifest_files(changes), *scenario.manifests]


def note_unrest(path: str, story: Story) -> None:
    """Whether the snapshot showed a cluster in the middle of something."""
    before = story.before
    if before is None:
        return
    if before.changes:
        took = f"{count(before.changes, 'change')} in {before.virtual_seconds:g} s"
        note(f"{place_name(path)} was not at rest: what was under way was played to its end first ({took}).")
    for reason in before.stuck:
        note(f"{place_name(path)}, before the change: {reason}")


def _read_manifest_files(paths: Sequence[str]) -> list[Document]:
    manifests: list[Document] = []
    problems: list[str] = []
    skipped: Tally[str] = Tally()
    for path in paths:
        try:
            data = bytes(read_text(path))
        except InputError as error:  # names the file already
            problems += error.problems
            continue
        try:
            manifests += read_manifests(data, skipped)
        except InputError as error:
            hint = InputError("expected manifests, got a scenario. Give it without -f.")
            problems += (hint if _is_scenario(data) else error).at(place_name(path)).problems
    if problems:
        raise InputError(*problems)
    if skipped:
        note(f"left out of the files, for they do not decide placement: {', '.join(sorted(skipped))}.")
    return manifests


def _is_manifest(data: bytes) -> bool:
    try:
        documents = parse_all(data)
    except InputError:
        return False
    return any(isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys() for document in documents)


def _is_scenario(data: bytes) -> bool:
    try:
        read_scenario(data)
    except InputError:
        return False
    return True


def _has_more_details(document: Document) -> bool:
    """Whether a manifest says something of its pods that a reduced snapshot does not hold."""
    template = (document.get("spec") or {}).get("template") or {}
    reduced_template = reduce_document(document).get("spec", {}).get("template", {})
    containers = (template.get("spec") or {}).get("containers") or []
    reduced_containers = reduced_template.get("spec", {}).get("containers", [])
    return bool((template.get("metadata") or {}).get("annotations")) or any(
        set(container) - set(reduced) for container, reduced in zip(containers, reduced_containers, strict=False)
    )
