"""An extender for one question: built from a cluster's objects, as kube-scheduler would be configured to ask it.

Called by `wukong explain`, and fit for whoever else decides about one pod by policies. Pure: usage and the time are
given, what is to be known beside the answer is returned as notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from wukong.api.core import Pod
from wukong.api.kinds import KINDS, NODE_USAGES, WUKONGS
from wukong.api.objects import Objects
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.profile import ExtenderEntry, Profile
from wukong.api.usage import NodeUsage
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.errors import InputError
from wukong.placement.compile import Policy
from wukong.placement.fleet import Latencies
from wukong.placement.prices import Prices
from wukong.placement.rule import Rules
from wukong.placement.wukong_plan import compile_wukong
from wukong.replies.extender.plugin import DEFAULT_ENTRY, is_interested
from wukong.replies.extender.verbs import Extender, Settings
from wukong.state import State


class ExtenderQuestion(NamedTuple):
    """An extender and how the scheduler is configured to ask it."""

    extender: Extender
    entry: ExtenderEntry
    now: float


class ExtenderInputs(NamedTuple):
    """What the extender decides by, besides the cluster's objects."""

    policies: Sequence[Policy]
    rules: Rules
    settings: Settings = Settings()
    prices: Prices | None = None
    latencies: Latencies | None = None
    weight: int | None = None  # of its scores; None: as the profile says


def choose_entry(profile: Profile, weight: int | None, notes: list[str]) -> ExtenderEntry:
    """How the scheduler asks: as its profile says, or as we install it."""
    if len(profile.extenders) > 1:
        notes.append("of the extenders in --scheduler-config only the first is modelled, as Wukong's own.")
    entry = profile.extenders[0] if profile.extenders else DEFAULT_ENTRY
    if weight is None:
        return entry
    return msgspec.structs.replace(entry, weight=weight, prioritize_verb=entry.prioritize_verb or "prioritize")


def build_extender_question(
    pod: Pod,
    objects: Objects,
    profile: Profile,
    inputs: ExtenderInputs,
    measure: Callable[[], list[NodeUsage]],
    now: float,
    *,
    without: str = "",
) -> tuple[ExtenderQuestion | None, list[str]]:
    """The question about this pod and notes on it; None where the scheduler would not ask about such a pod.

    `without` is a pod to leave out, by its key. `measure` is called only if there is a question.
    """
    notes: list[str] = []
    entry = choose_entry(profile, inputs.weight, notes)
    if not is_interested(entry, pod):
        notes.append(f"{pod.key} wants none of the extender's managedResources: it is not asked.")
        return None, notes
    state = mirror_objects(objects, inputs.policies, without)
    state.replace(NODE_USAGES.group_kind, measure())
    extender = Extender(state, inputs.settings, rules=inputs.rules, prices=inputs.prices, latencies=inputs.latencies)
    return ExtenderQuestion(extender, entry, now), notes


def is_of_judged_wukong(pod: Pod, objects: Objects, inputs: ExtenderInputs) -> bool:
    """Whether the pod is of a Wukong that wants something of nodes which only an extender, or our scheduler, can give.

    Then one is there, though there be no policies. A Wukong with problems wants nothing, as the extender has it.
    """
    name, settings = pod.metadata.labels.get(NAME_LABEL), inputs.settings
    key = f"{pod.metadata.namespace}/{name}"
    wukong = next((entry for entry in objects.of(WUKONGS.group_kind) if name and entry.key == key), None)
    if not isinstance(wukong, Wukong):
        return False
    try:
        plan = compile_wukong(
            wukong, inputs.rules, settings.gpu_names, judges_resources=settings.judges_wukong_resources
        )
    except InputError:
        return False
    return plan is not None and plan.judges_nodes


def mirror_objects(objects: Objects, policies: Sequence[Policy], without: str = "") -> State:
    """The extender's mirror of a cluster. What it does not read is left out."""
    state = State()
    state.replace("Node", objects.nodes)
    state.replace("Namespace", objects.namespaces)
    state.replace("Pod", [pod for pod in objects.pods if pod.key != without])
    for kind in (PlacementPolicy, ClusterPlacementPolicy):
        state.replace(KINDS.group_kind_of(kind), [policy for policy in policies if isinstance(policy, kind)])
    state.replace(WUKONGS.group_kind, objects.of(WUKONGS.group_kind))
    return state
