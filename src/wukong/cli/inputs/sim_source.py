"""What `wukong sim run` plays: a scenario's file, a snapshot to begin with (-s), manifests to apply to it (-f).

Reads and checks files, says what had to be left out or taken for granted; plays nothing.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from pathlib import Path

from wukong.app.snapshots import load
from wukong.cli.inputs.source import note_skipped
from wukong.cli.views.console import count, note
from wukong.cluster import place_name, read_text
from wukong.cluster.reduction import reduce_document
from wukong.cluster.snapshot_documents import read_documents
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.scenario.format.read import parse_all, read_manifests
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import parse_time
from wukong.errors import InputError
from wukong.ports import Document


def read_scenario_file(path: str) -> Scenario:
    """The scenario, with the documents of its `files` before its own manifests."""
    name, data = place_name(path), bytes(read_text(path))
    try:
        scenario = read_scenario(data)
    except InputError as error:
        if _is_manifest(data):
            raise InputError(f"{name}: expected a scenario, got a Kubernetes manifest. Give it with -f.") from None
        raise error.at(name) from None
    folder = Path(path).parent
    scenario.manifests = [*_manifests([str(folder / file) for file in scenario.files]), *scenario.manifests]
    return scenario


def read_start(path: str, scenario: Scenario, changes: Sequence[str]) -> LoadedSnapshot:
    """The snapshot made fit to be played on; `scenario` gets what -f names before its own manifests."""
    skipped: Tally[str] = Tally()
    found = read_documents(path, skipped)
    note_skipped(path, skipped)
    start = load(found.items, parse_time(found.taken_at) if found.taken_at else None)
    for each in start.notes:
        note(f"{place_name(path)}: {each}")
    given = _manifests(changes)
    if found.is_reduced and (more := [each for each in given if _holds_more(each)]):
        names = ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in more[:3])
        note(
            f"{place_name(path)} keeps only what decides placement: whether environment, arguments, probes or "
            f"annotations of {names} change is not known; taken as unchanged. kubectl get -o json keeps all."
        )
    scenario.manifests = [*(map(reduce_document, given) if found.is_reduced else given), *scenario.manifests]
    return start


def add_changes(scenario: Scenario, changes: Sequence[str]) -> None:
    """What -f names is applied first, to a cluster that is empty but for the scenario's nodes."""
    scenario.manifests = [*_manifests(changes), *scenario.manifests]


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


def _manifests(paths: Sequence[str]) -> list[Document]:
    found: list[Document] = []
    problems: list[str] = []
    skipped: Tally[str] = Tally()
    for path in paths:
        try:
            data = bytes(read_text(path))
        except InputError as error:  # names the file already
            problems += error.problems
            continue
        try:
            found += read_manifests(data, skipped)
        except InputError as error:
            told = "expected manifests, got a scenario. Give it without -f."
            wrong = InputError(told) if _is_scenario(data) else error
            problems += wrong.at(place_name(path)).problems
    if problems:
        raise InputError(*problems)
    if skipped:
        note(f"left out of the files, for they do not decide placement: {', '.join(sorted(skipped))}.")
    return found


def _is_manifest(data: bytes) -> bool:
    return any(isinstance(each, dict) and {"apiVersion", "kind"} <= each.keys() for each in parse_all(data))


def _is_scenario(data: bytes) -> bool:
    try:
        read_scenario(data)
    except InputError:
        return False
    return True


def _holds_more(document: Document) -> bool:
    """Whether a manifest says something of its pods that a reduced snapshot does not hold."""
    template = (document.get("spec") or {}).get("template") or {}
    told = reduce_document(document).get("spec", {}).get("template", {})
    containers = (template.get("spec") or {}).get("containers") or []
    return bool((template.get("metadata") or {}).get("annotations")) or any(
        set(given) - set(known)
        for given, known in zip(containers, told.get("spec", {}).get("containers", []), strict=False)
    )
