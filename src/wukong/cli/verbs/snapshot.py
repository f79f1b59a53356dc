"""`wukong snapshot`: what decides placement in a live cluster, as one file to ask questions of later, or elsewhere."""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import click
import msgspec

from wukong.api.kinds import CONFIG_MAPS
from wukong.cli.inputs import options
from wukong.cli.views.console import note, progress, show_json
from wukong.cluster import pause_garbage_collector
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.capture import capture_autoscaler_status, capture_documents
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.snapshot_file import encode_snapshot, summarize, write_snapshot
from wukong.ports import Document

_T = TypeVar("_T")


@click.command("snapshot")
@options.kubeconfig
@options.context
@click.option("-o", "--output", metavar="FILE", help="Where to write it; gzip if it ends in .gz.  [default: stdout]")
@click.option(
    "--anonymize", "is_anonymous", is_flag=True, help="Rename all but words that every cluster has, consistently."
)
def command(kubeconfig: str, context: str, output: str | None, is_anonymous: bool) -> None:
    """Capture what decides placement in a live cluster.

    Nodes, pods, workloads, services, budgets, priorities, volumes, claims, placement policies and Karpenter's pools,
    without anything that does not decide placement: no secrets are read, no config maps but cluster-autoscaler's
    status, and no environment, arguments or annotations are kept, but those by which Kubernetes numbers versions, the
    notice on a node that it is about to go (placement.novasphere.dev/notice), and what was decided for a pod at
    admission. The file is what -s of the other commands takes. With --anonymize the same is decided on it under other
    names: only numbers, times and the words of Kubernetes, clouds and Wukong itself stay.

    A FILE that is there is replaced only by a whole snapshot: nodes and pods must be readable, and the login valid.
    Other kinds that may not be listed are left out, and that is said. A link is followed, a device or pipe written to.

    \b
    Example:
      wukong snapshot -o cluster.json.gz
      wukong snapshot --anonymize -o for-support.json
    """
    with pause_garbage_collector():
        numbers: Tally[str] = Tally()
        if is_anonymous:
            documents = asyncio.run(capture_objects(kubeconfig, context, numbers, lambda document: document))
            if any(document["kind"] == CONFIG_MAPS.kind for document in documents):  # names stand anywhere in its text
                documents = [document for document in documents if document["kind"] != CONFIG_MAPS.kind]
                note("left out cluster-autoscaler's status, which cannot be made anonymous.")
            text = encode_list(anonymize_documents(documents))
        else:  # as text at once: a hundred thousand pods take a tenth of the room
            text = encode_list(asyncio.run(capture_objects(kubeconfig, context, numbers, encode_document)))
    if output is None:
        show_json(text)
        return
    write_snapshot(output, text)
    note(f"wrote {output}: {summarize(numbers)}.")


async def capture_objects(
    kubeconfig: str, context: str, numbers: Tally[str], keep: Callable[[Document], _T]
) -> list[_T]:
    """Return every object as `keep` makes it; `numbers` counts them by kind."""
    objects = []
    with progress("Reading the cluster") as report_progress:
        async with Kube(load(kubeconfig, context)) as kube:
            async for document in capture_documents(kube, report_progress, note):
                numbers[document["kind"]] += 1
                objects.append(keep(document))
            if (status := await capture_autoscaler_status(kube, note)) is not None:
                numbers[status["kind"]] += 1
                objects.append(keep(status))
    return objects


def encode_document(document: Document) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def encode_list(documents: Sequence[Document | msgspec.Raw]) -> bytes:
    """Return the text of a snapshot that is taken now."""
    return encode_snapshot(documents, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
