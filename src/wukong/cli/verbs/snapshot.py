"""`wukong snapshot`: what decides placement in a live cluster, as one file to ask questions of later, or elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from wukong.cli.inputs import options
from wukong.cli.views.console import count, note, progress
from wukong.cluster import pause_garbage_collector
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.capture import capture_documents
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.snapshot_documents import MARK
from wukong.errors import InputError
from wukong.ports import Document

_T = TypeVar("_T")


@click.command("snapshot")
@options.kubeconfig
@options.context
@click.option("-o", "--output", metavar="FILE", help="Where to write it; gzip if it ends in .gz.  [default: stdout]")
@click.option(
    "--anonymize", "is_anonymous", is_flag=True, help="Rename objects, label values and images, consistently."
)
def command(kubeconfig: str, context: str, output: str | None, is_anonymous: bool) -> None:
    """Capture what decides placement in a live cluster.

    Nodes, pods, workloads, services, budgets, priorities, volumes, claims and placement policies, without anything
    that does not decide placement: no secrets or config maps are read, and no environment, arguments or annotations
    are kept, but those by which Kubernetes numbers versions and the notice on a node that it is about to go
    (placement.novasphere.dev/notice). The file is what -s of the other commands takes. With --anonymize the same is
    decided on it under other names.

    \b
    Example:
      wukong snapshot -o cluster.json.gz
      wukong snapshot --anonymize -o for-support.json
    """
    with pause_garbage_collector():
        numbers: Tally[str] = Tally()
        if is_anonymous:
            text = encode(anonymize_documents(asyncio.run(take(kubeconfig, context, numbers, lambda each: each))))
        else:  # as text at once: a hundred thousand pods take a tenth of the room
            text = encode(asyncio.run(take(kubeconfig, context, numbers, written)))
    if output is None:
        sys.stdout.buffer.write(text)
        return
    write_whole(Path(output), gzip.compress(text) if output.endswith(".gz") else text)
    kinds = ", ".join(f"{numbers[kind]:,} {kind}" for kind in ("Node", "Pod"))
    note(f"wrote {output}: {kinds} and {count(numbers.total(), 'object')} in all.")


async def take(kubeconfig: str, context: str, numbers: Tally[str], keep: Callable[[Document], _T]) -> list[_T]:
    """Every object as `keep` has it; `numbers` counts them by kind."""
    taken = []
    with progress("Reading the cluster") as tell:
        async with Kube(load(kubeconfig, context)) as kube:
            async for each in capture_documents(kube, tell, note):
                numbers[each["kind"]] += 1
                taken.append(keep(each))
    return taken


def written(document: Document) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def encode(documents: Sequence[Document | msgspec.Raw]) -> bytes:
    """A List, as kubectl would print it, with a word on when it was taken and that it is not whole."""
    taken = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"apiVersion": "v1", "kind": "List", MARK: {"version": 1, "takenAt": taken}}
    return msgspec.json.encode({**head, "items": documents}) + b"\n"


def write_whole(path: Path, data: bytes) -> None:
    """Either the whole file or none: it is written beside and moved into place."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(data)
        try:
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from None
