"""`wukong ledger verify`: whether the ledger says what the cluster has; exit code 1 where it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from wukong.api.apps import Deployment, StatefulSet
from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS
from wukong.api.unreadable import Unreadable, read_document
from wukong.cli.inputs import options
from wukong.cli.inputs.ledger import add_ledger_options, read_latest
from wukong.cli.views.console import count, note, show, show_document
from wukong.cli.views.ledger import build_comparison_document, build_comparison_table
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.controllers.ledger.comparison import ObservedWorkload, compare
from wukong.ports import Cluster

DIFFERS = 1
PAGE = 500


@click.command("verify")
@add_ledger_options
@options.kubeconfig
@options.context
@options.output
def command(path: str, cluster_name: str, kubeconfig: str, context: str, output: str | None) -> int:
    """Compare the ledger with the cluster: what differs, and since when.

    Ends with 1 if something differs. A workload that is on its way does not differ: the ledger says what was true
    before. What has changed within the last seconds may not be recorded yet, and what is gone is closed after a minute.

    \b
    Example:
      wukong ledger verify --ledger ledger.db
    """
    records = {record.object_name: record for record in asyncio.run(read_latest(path, cluster_name))}
    comparisons = compare(asyncio.run(read_workloads(kubeconfig, context)), records)
    different = [entry for entry in comparisons if entry.verdict == "Differs"]
    if output in ("json", "yaml"):
        show_document(build_comparison_document(comparisons), output)
    else:
        shown = comparisons if output == "wide" else [entry for entry in comparisons if entry.verdict != "Same"]
        if shown:
            show(build_comparison_table(shown, is_wide=output == "wide"), "")
        same = sum(entry.verdict == "Same" for entry in comparisons)
        show(f"{count(len(comparisons), 'workload')}: {same} as recorded, {len(different)} not.")
    return DIFFERS if different else 0


async def read_workloads(kubeconfig: str, context: str) -> list[ObservedWorkload]:
    async with Kube(load(kubeconfig, context)) as kube:
        return [
            *[entry async for entry in list_observed(kube, Deployment)],
            *[entry async for entry in list_observed(kube, StatefulSet)],
        ]


async def list_observed(cluster: Cluster, struct: type[Deployment] | type[StatefulSet]) -> Any:
    """The workloads of a kind, page by page. What cannot be read is noted and left out."""
    resource = DEPLOYMENTS if struct is Deployment else STATEFUL_SETS
    token = ""
    while True:
        page = await cluster.list(resource, dict, limit=PAGE, token=token)
        for document in page.items:
            subject = read_document(document, struct)
            if isinstance(subject, Unreadable):
                note(f"{resource.kind} {subject.key} cannot be read and is left out: {subject.problem}")
                continue
            yield ObservedWorkload(subject, find_status_time(document))
        token = page.token
        if not token:
            return


def find_status_time(document: dict[str, Any]) -> str:
    """When the status was last written, as its field managers say; "" if they do not."""
    managers = (document.get("metadata") or {}).get("managedFields")
    entries = [entry for entry in managers if isinstance(entry, dict)] if isinstance(managers, list) else []
    times = [entry.get("time") for entry in entries if entry.get("subresource") == "status"]
    return max((time for time in times if isinstance(time, str)), default="")
