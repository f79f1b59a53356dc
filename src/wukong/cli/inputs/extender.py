"""The extender for one question: the options that concern it, and the extender they make of a cluster's objects.

Used by explain.py. Reads policies, prices and latencies; decides nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from wukong.api.core import Pod
from wukong.api.kinds import KINDS
from wukong.api.objects import Objects
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.profile import ExtenderEntry, Profile
from wukong.app.rules import load_rules
from wukong.cli.inputs.extender_options import (
    CRITICAL_PRIORITY,
    DEFAULT_STRATEGY,
    LATENCIES,
    PRICES,
    read_file,
    strategy_of,
)
from wukong.cli.inputs.node_usage import measure
from wukong.cli.inputs.policies import held_policies, read_policies
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import note
from wukong.placement.compile import Policy
from wukong.placement.prices import read_prices
from wukong.placement.rules.latency import read_latencies
from wukong.replies.extender.plugin import DEFAULT_ENTRY, is_interested
from wukong.replies.extender.verbs import Extender, Settings
from wukong.state import State

_F = TypeVar("_F", bound=Callable[..., Any])


class Wanted(NamedTuple):
    """What the options say."""

    policies: tuple[str, ...] = ()  # files
    is_asked: bool = False  # --extender
    weight: int | None = None
    prices: str | None = None
    latencies: str | None = None
    prometheus: str = ""
    critical_priority: int = Settings().critical_priority
    default_strategy: str = Settings().strategy


def placing_options(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--policy",
        "policies",
        multiple=True,
        metavar="FILE",
        help="Decide by the policies in this file instead of the cluster's own; may be given several times.",
    ),
    click.option("--extender", "is_asked", is_flag=True, help="Ask the extender even where there are no policies."),
    click.option(
        "--extender-weight",
        "weight",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"What its scores count, × 10.  [default: as in --scheduler-config, else {DEFAULT_ENTRY.weight}]",
    ),
    PRICES,
    LATENCIES,
    click.option(
        "--prometheus",
        default="",
        metavar="URL",
        help="Where usage comes from.  [default: metrics.k8s.io, or the usage labels of the nodes]",
    ),
    CRITICAL_PRIORITY,
    DEFAULT_STRATEGY,
)


class Placing(NamedTuple):
    """An extender and how the scheduler is configured to ask it."""

    extender: Extender
    entry: ExtenderEntry
    now: float


def make_placing(
    wanted: Wanted, source: Source, objects: Objects, profile: Profile, pod: Pod, without: str
) -> Placing | None:
    """None where the scheduler asks no extender. `without` is a pod to leave out, by its key."""
    rules = load_rules()
    policies = read_policies(wanted.policies, rules) if wanted.policies else held_policies(objects, rules)
    files = read_file(wanted.prices, read_prices), read_file(wanted.latencies, read_latencies)
    _note_replaced(wanted, objects)
    if not (policies or wanted.is_asked or profile.extenders):
        return None
    entry = _entry(wanted, profile)
    if not is_interested(entry, pod):
        note(f"{pod.key} wants none of the extender's managedResources: it is not asked.")
        return None
    now = time.time()
    state = _mirror(objects, policies, without)
    state.usage = measure(source, objects.nodes, wanted.prometheus, now)
    settings = Settings(wanted.critical_priority, strategy_of(wanted.default_strategy))
    return Placing(Extender(state, settings, rules=rules, prices=files[0], latencies=files[1]), entry, now)


def _mirror(objects: Objects, policies: Sequence[Policy], without: str) -> State:
    """The extender's mirror of the cluster. What it does not read is left out."""
    state = State()
    state.replace("Node", objects.nodes)
    state.replace("Namespace", objects.namespaces)
    state.replace("Pod", [pod for pod in objects.pods if pod.key != without])
    for kind in (PlacementPolicy, ClusterPlacementPolicy):
        state.replace(KINDS.group_kind_of(kind), [policy for policy in policies if isinstance(policy, kind)])
    return state


def _entry(wanted: Wanted, profile: Profile) -> ExtenderEntry:
    if len(profile.extenders) > 1:
        note("of the extenders in --scheduler-config only the first is modelled, as Wukong's own.")
    entry = profile.extenders[0] if profile.extenders else DEFAULT_ENTRY
    if wanted.weight is None:
        return entry
    return msgspec.structs.replace(entry, weight=wanted.weight, prioritize_verb=entry.prioritize_verb or "prioritize")


def _note_replaced(wanted: Wanted, objects: Objects) -> None:
    own = len(objects.placement_policies) + len(objects.cluster_placement_policies)
    if wanted.policies and own:
        note(f"only --policy counts; the policies of the cluster itself ({own}) are left aside.")
