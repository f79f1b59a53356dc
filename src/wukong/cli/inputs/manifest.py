"""What -f names: read from its file, and what is to be known of it printed. The rest is app.pod_from_manifest's."""

from __future__ import annotations

from collections import Counter as Tally

from wukong.api.objects import Objects
from wukong.app.pod_from_manifest import PodQuestion, admit_pod, apply_manifest, find_subject
from wukong.cli.inputs.namespaces import Namespace, NamespaceWriter
from wukong.cli.inputs.source import note_skipped
from wukong.cli.views.console import note
from wukong.cluster import place_name, read_manifests


def read_manifest(path: str, objects: Objects, namespace: Namespace) -> PodQuestion:
    """The pod to decide about. Adds to `objects` whatever the manifest brings along."""
    skipped: Tally[str] = Tally()
    place = place_name(path)
    writer = NamespaceWriter(namespace, path)
    manifest = read_manifests(path, skipped, writer.set_namespace)
    writer.finish()
    subject = find_subject(manifest, skipped, place)
    note_skipped(path, skipped)
    apply_manifest(manifest, objects)
    notes: list[str] = []
    try:
        return admit_pod(subject, objects, place, notes)
    finally:
        for text in notes:
            note(text)
