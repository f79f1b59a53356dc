"""What the verbs of `wukong ledger` ask for: the file, the cluster in it, and which workload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS
from wukong.api.ledger import ReplicaRecord, object_name_of
from wukong.cli.inputs.workload_names import read_workload_in
from wukong.cluster.ledger.address import find_problem
from wukong.cluster.ledger.sqlite import SqliteLedger, open_sqlite
from wukong.errors import InputError

C = TypeVar("C", bound=Callable[..., Any])


def add_ledger_options(command: C) -> C:
    command = click.option(
        "--cluster-name", default="default", show_default=True, metavar="NAME", help="Which cluster of the ledger."
    )(command)
    return click.option(
        "--ledger", "path", default="ledger.db", show_default=True, metavar="FILE", help="The ledger: a file of SQLite."
    )(command)


@asynccontextmanager
async def open_to_read(path: str, cluster_name: str) -> AsyncIterator[SqliteLedger]:
    """The ledger of a file, which is never changed. Raises InputError if it cannot be read."""
    if problem := find_problem(path):
        raise InputError(f"--ledger: {problem}")
    try:
        ledger = await open_sqlite(path, cluster_name, is_read_only=True)
    except InputError as error:
        raise error.at("--ledger") from None
    try:
        yield ledger
    finally:
        await ledger.close()


async def read_latest(path: str, cluster_name: str) -> list[ReplicaRecord]:
    """What the ledger says of all workloads, closed ones too, sorted."""
    async with open_to_read(path, cluster_name) as ledger:
        return [entry.record for entry in await ledger.list_latest()]


def read_object_name(text: str, namespace: str) -> str:
    """`deploy/web`, `sts/shop/db` as the ledger has it. Raises InputError for what is recorded of no workload."""
    resource, key = read_workload_in(text, namespace)
    if resource not in (DEPLOYMENTS, STATEFUL_SETS):
        raise InputError(f"{text}: expected a Deployment or a StatefulSet; of other kinds nothing is recorded.")
    return object_name_of(resource.kind, key.namespace, key.name)
