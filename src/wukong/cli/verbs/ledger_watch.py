"""`wukong ledger watch`: each record as it comes, until interrupted; with -o json one line each."""

from __future__ import annotations

import asyncio
import json

import click

from wukong.api.ledger import ReplicaRecord
from wukong.cli.inputs.ledger import add_ledger_options, open_to_read
from wukong.cli.views.console import show
from wukong.cli.views.escaping import escape_json
from wukong.cli.views.ledger import build_record

ASK_SECONDS = 0.5


@click.command("watch")
@add_ledger_options
@click.option("-o", "--output", type=click.Choice(["json"]), help="One document a line, for programs.")
def command(path: str, cluster_name: str, output: str | None) -> None:
    """Print each record as it comes, until interrupted. What is there already is printed first.

    \b
    Example:
      wukong ledger watch --ledger ledger.db
    """
    asyncio.run(follow(path, cluster_name, is_json=output == "json"))


async def follow(path: str, cluster_name: str, *, is_json: bool) -> None:
    """For ever."""
    async with open_to_read(path, cluster_name) as ledger:
        seen_version = -1
        while True:
            version = await ledger.read_version()
            if version != seen_version:
                latest = await ledger.list_latest()
                news = [entry for entry in latest if int(entry.metadata.resource_version) > seen_version]
                for entry in sorted(news, key=lambda entry: int(entry.metadata.resource_version)):
                    show(render(entry.record, is_json=is_json))
                seen_version = version
            await asyncio.sleep(ASK_SECONDS)


def render(record: ReplicaRecord, *, is_json: bool) -> str:
    if is_json:
        return escape_json(json.dumps(build_record(record), ensure_ascii=False))
    if record.closed_at:
        return f"{record.closed_at} {record.title}: closed, {record.replicas} replicas at the end"
    revision = f", revision {record.revision}" if record.revision else ""
    return f"{record.at} {record.title}: {record.replicas} replicas (generation {record.generation}{revision})"
