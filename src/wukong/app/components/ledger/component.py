"""The ledger as a component: what it may do, and how it is made. It writes nothing to a cluster."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS
from wukong.app.component import Component, Context
from wukong.app.components.ledger.options import LedgerOptions, find_problems
from wukong.app.install.controller import build_manifests
from wukong.app.permissions import Permission
from wukong.controllers.ledger.controller import Ledger as LedgerController
from wukong.ports import Cluster, Ledger
from wukong.runtime.queue import Backoff

if TYPE_CHECKING:
    from wukong.runtime.ledger_source import LedgerSource

# Every change of a workload is an attempt: while its store is down they come quickly, and once it is back nobody should
# wait for minutes.
BACKOFF = Backoff(first=0.5, cap=30.0)


def permissions_of(options: LedgerOptions) -> tuple[Permission, ...]:
    return tuple(
        Permission(resource.group, resource.plural, ("list", "watch")) for resource in (DEPLOYMENTS, STATEFUL_SETS)
    )


def build_controllers(options: LedgerOptions, context: Context) -> tuple[LedgerController, ...]:
    return (LedgerController(options.cluster_name, BACKOFF),)


async def open_ledger(options: LedgerOptions, stack: AsyncExitStack, *, is_dry_run: bool) -> Ledger | None:
    """The file, closed with the stack. A dry run only reads it, and makes none."""
    from wukong.cluster.ledger.sqlite import exists, open_sqlite

    if is_dry_run and not exists(options.file):
        return None
    ledger = await open_sqlite(options.file, options.cluster_name, keep=options.keep, is_read_only=is_dry_run)
    stack.push_async_callback(ledger.close)
    return ledger


def build_sources(options: LedgerOptions, context: Context, cluster: Cluster) -> tuple[LedgerSource, ...]:
    from wukong.runtime.ledger_source import LedgerSource

    assert context.ledger is not None, "opened before anything runs"
    return (LedgerSource(context.ledger),)


LEDGER = Component(
    name="ledger",
    help=(
        "records how many replicas each Deployment and StatefulSet has, once they are all available: dips and surges "
        "of rollouts never show. Records are kept in a file of SQLite; wukong ledger shows them."
    ),
    options=LedgerOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    build_sources=build_sources,
    open_ledger=open_ledger,
    build_manifests=build_manifests,
)
