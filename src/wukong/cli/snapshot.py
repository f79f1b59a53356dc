"""`wukong snapshot`: what decides placement in a live cluster, as one file to ask questions of later, or elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
from pathlib import Path

import click
import msgspec

from wukong.api.kinds import KINDS, Objects
from wukong.cli import options
from wukong.cli.console import count, note
from wukong.cli.source import Source, read_live
from wukong.cluster import collector_paused
from wukong.cluster.anonymize import anonymize
from wukong.errors import InputError


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
    are kept, but the notice on a node that it is about to go (placement.novasphere.dev/notice). The file is what -s of
    the other commands takes. With --anonymize the same is decided on it under other names.

    \b
    Example:
      wukong snapshot -o cluster.json.gz
      wukong snapshot --anonymize -o for-support.json
    """
    with collector_paused():
        objects = asyncio.run(read_live(Source(None, kubeconfig, context))).objects
        text = encode(anonymize(objects) if is_anonymous else objects)
    if output is None:
        sys.stdout.buffer.write(text)
        return
    write_whole(Path(output), gzip.compress(text) if output.endswith(".gz") else text)
    kinds = ", ".join(f"{len(objects.of(kind)):,} {kind}" for kind in ("Node", "Pod"))
    note(f"wrote {output}: {kinds} and {count(sum(len(objects.of(kind)) for kind in KINDS), 'object')} in all.")


def encode(objects: Objects) -> bytes:
    """A List, as kubectl would print it."""
    items = [entry for kind in KINDS for entry in objects.of(kind)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}) + b"\n"


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
