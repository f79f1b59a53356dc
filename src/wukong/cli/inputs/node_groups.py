"""--node-groups: the file of node groups, for verbs that play a cluster. Reads it, and says what had to be left out.

A plan without it goes by what the cluster itself tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from wukong.api.core import Node
from wukong.api.kinds import NODES
from wukong.cli.views.console import note
from wukong.cli.views.table import name_some
from wukong.cluster import place_name, read_text
from wukong.embedded.scenario import Scenario
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.world import objects
from wukong.errors import InputError
from wukong.placement.node_groups.checks import find_double_names
from wukong.placement.node_groups.cluster import read_cluster_groups
from wukong.placement.node_groups.file import read_node_groups

F = TypeVar("F", bound=Callable[..., Any])
NONE = "none"  # instead of a file: nodes stay as they are


def add_node_groups_option(command: F) -> F:
    return click.option(
        "--node-groups",
        metavar="FILE",
        help="Let a cluster autoscaler add and remove nodes of these groups: nodeGroups as in a scenario, the "
        "ConfigMap cluster-autoscaler-status, or Karpenter's NodePools.",
    )(command)


def add_node_groups(scenario: Scenario, path: str | None, start: LoadedSnapshot | None = None) -> None:
    """The groups of the file come to those of the scenario. Of a snapshot the nodes tell what others are like."""
    if path is None:
        return
    place = place_name(path)
    try:
        groups, notes = read_node_groups(bytes(read_text(path)), list_nodes(start))
        scenario.node_groups = [*scenario.node_groups, *groups]
        if problems := list(find_double_names(scenario.node_groups, "$.nodeGroups")):
            raise InputError(*problems)
    except InputError as error:
        raise error.at(place) from None
    for text in notes:
        note(f"{place}: {text}")


def add_cluster_groups(scenario: Scenario, start: LoadedSnapshot, place: str) -> None:
    """The groups that the snapshot or the cluster tells of come to those of the scenario; a note names them."""
    groups, notes = read_cluster_groups(start.node_groups, list_nodes(start))
    scenario.node_groups = [*scenario.node_groups, *groups]
    for text in notes:
        note(f"{place}: {text}")
    if groups:
        names = name_some([group.name for group in groups])
        note(f"{place}: nodes of its groups may come and go ({names}). --node-groups none keeps them as they are.")


def list_nodes(start: LoadedSnapshot | None) -> Sequence[Node]:
    """The nodes of a snapshot."""
    objects_by_kind = start.objects if start is not None else ()
    documents = [document for resource, items in objects_by_kind if resource == NODES for document in items]
    return [node for document in documents if isinstance(node := objects.read("Node", document), Node)]
