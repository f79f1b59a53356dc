"""The options of a verb that asks the extender once, and the files they name. Used by explain.py and capacity.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from wukong.api.core import Pod
from wukong.api.objects import Objects
from wukong.api.profile import Profile
from wukong.app.components.extender.options import ExtenderOptions, latencies_of, prices_of, settings_of
from wukong.app.components.wukongs import WukongOptions
from wukong.app.extender_question import (
    ExtenderInputs,
    ExtenderQuestion,
    build_extender_question,
    is_of_judged_wukong,
)
from wukong.app.options import options_of
from wukong.app.policy_documents import choose_good_policies
from wukong.app.rules import load_rules
from wukong.cli.inputs.flags import build_flag
from wukong.cli.inputs.namespaces import Namespace
from wukong.cli.inputs.node_usage import measure
from wukong.cli.inputs.options import refuse_stdin_twice
from wukong.cli.inputs.policies import read_policies
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import note
from wukong.placement.compile import Policy
from wukong.placement.rule import Rules
from wukong.placement.vm.settings import ResourceAffinityMode
from wukong.replies.extender.plugin import DEFAULT_ENTRY

F = TypeVar("F", bound=Callable[..., Any])
_SHARED = {option.field: build_flag(option) for option in options_of(ExtenderOptions)}  # as `wukong run` has them


class PlacingOptions(NamedTuple):
    """What the options say."""

    policies: tuple[str, ...] = ()  # files
    is_asked: bool = False  # --extender
    weight: int | None = None
    prices: str = ""
    latencies: str = ""
    prometheus: str = ""
    critical_priority: int = ExtenderOptions().critical_priority
    default_strategy: str = ExtenderOptions().default_strategy
    resource_affinity: ResourceAffinityMode = WukongOptions().resource_affinity

    def refuse_stdin_twice(self, **files: str | None) -> None:
        """Refuse `-` where two of these files, or of those the options name, are to be read from standard input."""
        policy = "-" if "-" in self.policies else None
        refuse_stdin_twice(**files, prices=self.prices, latencies=self.latencies, policy=policy)


def placing_options(command: F) -> F:
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
    _SHARED["prices"],
    _SHARED["latencies"],
    click.option(
        "--prometheus",
        default="",
        metavar="URL",
        help="Where usage comes from.  [default: metrics.k8s.io, or the usage labels of the nodes]",
    ),
    _SHARED["critical_priority"],
    _SHARED["default_strategy"],
    *(build_flag(option) for option in options_of(WukongOptions)),
)


def read_extender_question(
    placing: PlacingOptions,
    source: Source,
    objects: Objects,
    profile: Profile,
    pod: Pod,
    *,
    namespace: Namespace,
    without: str = "",
) -> ExtenderQuestion | None:
    """None where the scheduler asks no extender. `without` is a pod to leave out, by its key; `namespace` that of
    policies of files that name none."""
    options = ExtenderOptions(
        critical_priority=placing.critical_priority,
        default_strategy=placing.default_strategy,
        prices=placing.prices,
        latencies=placing.latencies,
    )
    rules = load_rules()
    policies = _read_policies(placing, objects, rules, namespace)
    judges_resources = WukongOptions(resource_affinity=placing.resource_affinity).is_judged
    settings = settings_of(options, judges_wukong_resources=judges_resources)
    inputs = ExtenderInputs(policies, rules, settings, prices_of(options), latencies_of(options), placing.weight)
    _note_replaced(placing, objects)
    is_asked = policies or placing.is_asked or profile.extenders or is_of_judged_wukong(pod, objects, inputs)
    if not is_asked:
        return None
    now = time.time()
    question, notes = build_extender_question(
        pod,
        objects,
        profile,
        inputs,
        lambda: measure(source, objects.nodes, placing.prometheus, now),
        now,
        without=without,
    )
    for text in notes:
        note(text)
    return question


def _read_policies(placing: PlacingOptions, objects: Objects, rules: Rules, namespace: Namespace) -> list[Policy]:
    """Those of the files where some are named, else the good ones of the cluster."""
    if placing.policies:
        return read_policies(placing.policies, rules, namespace)
    policies, notes = choose_good_policies(objects, rules)
    for text in notes:
        note(text)
    return policies


def _note_replaced(placing: PlacingOptions, objects: Objects) -> None:
    own = len(objects.placement_policies) + len(objects.cluster_placement_policies)
    if placing.policies and own:
        note(f"only --policy counts; the policies of the cluster itself ({own}) are left aside.")
