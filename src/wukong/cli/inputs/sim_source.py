"""What `wukong sim run` plays: a scenario's file, a cluster to begin with (-s or the context), manifests (-f).

Reads and checks files, lists a live cluster, says what had to be left out or taken for granted; plays nothing.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from wukong.app.snapshots import load
from wukong.cli.inputs.namespaces import Namespace, NamespaceWriter
from wukong.cli.inputs.scheduler import note_other_version
from wukong.cli.inputs.source import UNMODELLED_KINDS, Source, note_sampling, note_skipped
from wukong.cli.inputs.unknown_fields import warn_of_unknown_fields
from wukong.cli.views.console import busy, count, note, progress
from wukong.cluster import place_name, read_text
from wukong.cluster.reduction import reduce_document
from wukong.cluster.snapshot_documents import Documents, read_documents
from wukong.embedded.scenario import Scenario, Story, read_scenario
from wukong.embedded.scenario.format.fields import as_list
from wukong.embedded.scenario.format.read import parse_all, read_manifests
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import parse_time
from wukong.embedded.store.limits.pod_security import ENFORCE
from wukong.errors import InputError
from wukong.placement.node_groups.cluster import tells_node_groups
from wukong.ports import Document

F = TypeVar("F", bound=Callable[..., Any])
ChooseNamespace = Callable[[], Namespace]


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
    warn_of_unknown_fields(name, scenario.documents)
    scenario.manifests = [*read_manifest_files([str(folder / file) for file in scenario.files]), *scenario.manifests]
    return scenario


def _is_below(file: Path, folders: Sequence[str]) -> bool:
    """Tell whether a file is below one of the folders once links are followed."""
    try:
        return any(file.resolve().is_relative_to(Path(folder).resolve()) for folder in folders)
    except (OSError, RuntimeError, ValueError):  # links in a circle, a zero byte
        return False


def read_start(source: Source, scenario: Scenario, changes: Sequence[str], choose: ChooseNamespace) -> LoadedSnapshot:
    """The cluster made fit to be played on; `scenario` gets what -f names before its own manifests."""
    place, namespaces = source.place, list[str]()
    manifests = read_manifest_files(changes, choose)  # first: a mistake there is said before a cluster is asked
    snapshot = read_live_documents(source) if source.snapshot is None else _read_snapshot(source.snapshot)
    with busy(f"Loading {place} …"):
        documents = list(snapshot.items)
        if snapshot.is_reduced:
            documents = [_without_pod_security(document, namespaces) for document in documents]
        try:
            start = load(documents, parse_time(snapshot.taken_at) if snapshot.taken_at else None)
        except InputError as error:
            raise error.at(place) from None
    start.node_groups = snapshot.node_groups
    for remark in start.notes:
        note(f"{place}: {remark}")
    nodes = [document for document in documents if document.get("kind") == "Node"]
    note_sampling(len(nodes))
    note_other_version(_read_kubelet(node) for node in nodes)
    if namespaces:
        note(
            f"{place} keeps no security contexts: whether Pod Security Standards refuse new pods in "
            f"{', '.join(sorted(namespaces)[:3])} is not known; taken as if none did. kubectl get -o json keeps all."
        )
    applied = [*manifests, *scenario.documents]
    if snapshot.is_reduced and (detailed := [manifest for manifest in applied if _has_more_details(manifest)]):
        names = ", ".join(f"{manifest['kind']} {manifest['metadata']['name']}" for manifest in detailed[:3])
        note(
            f"{place} keeps only what decides placement: whether environment, arguments, probes or "
            f"annotations of {names} change is not known; taken as unchanged. kubectl get -o json keeps all."
        )
    scenario.manifests = [*manifests, *scenario.manifests]
    if snapshot.is_reduced:
        _reduce(scenario)
    return start


def _read_kubelet(node: Document) -> str:
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    return str(info.get("kubeletVersion", "")) if isinstance(info, dict) else ""


def _read_snapshot(path: str) -> Documents:
    skipped: Tally[str] = Tally()
    with busy(f"Reading {place_name(path)} …"):
        snapshot = read_documents(path, skipped)
    note_skipped(path, skipped, is_snapshot=True)
    return snapshot


def read_live_documents(source: Source) -> Documents:
    """All that the cluster of the context holds and a forecast loads, whole: nothing of it leaves this process."""
    import asyncio
    from datetime import UTC, datetime

    from wukong.cluster.capture import capture_autoscaler_status, capture_documents
    from wukong.cluster.credentials import load as load_credentials
    from wukong.cluster.kube import Kube

    documents = Documents(taken_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def read() -> None:
        with progress("Reading the cluster") as report_progress:
            async with Kube(load_credentials(source.kubeconfig, source.context)) as kube:
                async for document in capture_documents(kube, report_progress, note, keep=lambda document: document):
                    (documents.node_groups if tells_node_groups(document) else documents.items).append(document)
                if (status := await capture_autoscaler_status(kube, note)) is not None:
                    documents.node_groups.append(status)

    asyncio.run(read())
    return documents


def _reduce(scenario: Scenario) -> None:
    """In place: leave out of every manifest what the snapshot leaves out of its objects; else it would be a change."""
    scenario.manifests = [reduce_document(document) for document in scenario.manifests]
    for entry in scenario.timeline:
        if entry.apply is not None:
            entry.apply = [reduce_document(document) for document in as_list(entry.apply)]


def _without_pod_security(document: Document, namespaces: list[str]) -> Document:
    """A Namespace without the labels by which pods are refused; `namespaces` gets its name if it has some."""
    labels = (document.get("metadata") or {}).get("labels") or {}
    if document.get("kind") != "Namespace" or labels.get(ENFORCE, "privileged") == "privileged":
        return document
    namespaces.append(document["metadata"]["name"])
    kept = {name: value for name, value in labels.items() if not name.startswith(ENFORCE)}
    return {**document, "metadata": {**document["metadata"], "labels": kept}}


def add_changes(scenario: Scenario, changes: Sequence[str], choose: ChooseNamespace) -> None:
    """What -f names is applied first, to a cluster that is empty but for the scenario's nodes."""
    scenario.manifests = [*read_manifest_files(changes, choose), *scenario.manifests]


def note_unrest(place: str, story: Story) -> None:
    """Whether the cluster was in the middle of something."""
    before = story.before
    if before is None:
        return
    if before.changes:
        took = f"{count(before.changes, 'change')} in {before.virtual_seconds:g} s"
        note(f"{place} was not at rest: what was under way was played to its end first ({took}).")
    for reason in before.stuck:
        note(f"{place}, before the change: {reason}")


def read_manifest_files(paths: Sequence[str], choose: ChooseNamespace | None = None) -> list[Document]:
    """The manifests of these files that can be played; where they name no namespace, in the one that is chosen.

    It is chosen once all can be read. Notes what is left out. Raises InputError with every problem.
    """
    manifests: list[tuple[str, list[Document]]] = []
    problems: list[str] = []
    skipped: Tally[str] = Tally()
    for path in paths:
        try:
            data = bytes(read_text(path))
        except InputError as error:  # names the file already
            problems += error.problems
            continue
        try:
            documents = read_manifests(data, skipped)
            warn_of_unknown_fields(place_name(path), documents)
            manifests.append((path, documents))
        except InputError as error:
            hint = InputError("expected manifests, got a scenario. Give it without -f.")
            problems += (hint if _is_scenario(data) else error).at(place_name(path)).problems
    if problems:
        raise InputError(*problems)
    unmodelled = sorted(kind for kind in skipped if kind in UNMODELLED_KINDS | {"CronJob"})
    if irrelevant := sorted(skipped.keys() - set(unmodelled)):
        note(f"left out of the files, for they do not decide placement: {', '.join(irrelevant)}.")
    if unmodelled:
        kinds = ", ".join(unmodelled)
        note(f"left out of the files, for they are not modelled, though pods may depend on them: {kinds}.")
    if choose is not None and paths:
        namespace = choose()
        manifests = [(path, _fill_namespaces(documents, namespace, path)) for path, documents in manifests]
    return [document for _, documents in manifests for document in documents]


def _fill_namespaces(documents: list[Document], namespace: Namespace, path: str) -> list[Document]:
    writer = NamespaceWriter(namespace, path)
    filled = [writer.fill_document(document) for document in documents]
    writer.finish()
    return filled


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
