"""What `wukong patch`, `separate`, `undo` and `follow` are asked: names, amounts, weights, selectors, patches.

Texts in, values out; every problem is an InputError that names its option. Reads no cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from wukong.api.documents import load_yaml
from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS
from wukong.api.resources import Key, Resource
from wukong.cli.inputs.workload_names import read_workload_in
from wukong.embedded.scenario.format.fields import seconds_of
from wukong.embedded.store.selectors import parse_label_selector
from wukong.errors import ClusterError, InputError
from wukong.ports import Document

F = TypeVar("F", bound=Callable[..., Any])
TOPOLOGIES = {"hostname": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone"}
WEIGHT = 100  # of a preference without one
_AMOUNT = re.compile(r"\d{1,6}%?")


def add_course_options(command: F) -> F:
    """The options of every verb that changes a workload."""
    for option in reversed(_COURSE_OPTIONS):
        command = option(command)
    return command


_COURSE_OPTIONS = (
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--force", is_flag=True, help="Change it though it is not safe, or somebody else keeps it."),
    click.option("--take-advice", type=click.IntRange(1), metavar="N", help="With what the plan's advice N changes."),
    click.option("--seeds", default="16", show_default=True, metavar="N|A-B", help="So many plays, or these seeds."),
    click.option("--follow/--no-follow", "follows", default=True, help="Follow the rollout.  [default: yes]"),
    click.option("--auto-undo", is_flag=True, help="Write it back if the rollout fails, or is not over in time."),
    click.option("--timeout", default="", metavar="TIME", help="Follow no longer than this, such as 10m."),
    click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="A document for programs."),
)


def read_target(text: str, namespace: str, *allowed: Resource) -> tuple[Resource, Key]:
    """`deploy/web` as a kind and a key. Raises InputError for another kind than the allowed."""
    resource, key = read_workload_in(text, namespace)
    if resource not in (allowed or (DEPLOYMENTS, STATEFUL_SETS)):
        kinds = " or ".join(kind.kind for kind in allowed or (DEPLOYMENTS, STATEFUL_SETS))
        raise InputError(f"{text}: expected a {kinds}, got a {resource.kind}.")
    return resource, key


def read_topology(text: str) -> str:
    return TOPOLOGIES.get(text, text)


def choose_weight(*, required: bool, preferred: int | None, option: str) -> int | None:
    """None for required. Raises InputError unless exactly one of the two is said."""
    if required == (preferred is not None):
        raise InputError(f"{option}: say --required, or --preferred with or without a weight; one of them.")
    return preferred


def read_amount(text: str | None, option: str) -> int | str | None:
    """`1` or `25%`; None where nothing is said."""
    if text is None:
        return None
    if not _AMOUNT.fullmatch(text):
        raise InputError(f'{option}: expected a number of pods such as 1, or a share such as 25%, got "{text:.50}".')
    return text if text.endswith("%") else int(text)


def read_timeout(text: str) -> float | None:
    if not text:
        return None
    seconds = seconds_of(text)
    if not seconds:
        raise InputError(f'--timeout: expected a duration such as 90s, 10m or 1h, got "{text:.50}".')
    return seconds


def read_selector(text: str | None) -> Document | None:
    """A label selector in kubectl's syntax as a LabelSelector. Raises InputError for what is none."""
    if text is None:
        return None
    try:
        requirements = parse_label_selector(text)
    except ClusterError as error:
        raise InputError(f"--selector: {error}.") from None
    labels: dict[str, str] = {}
    expressions: list[Document] = []
    for key, operator, values in requirements:
        if operator in ("Gt", "Lt"):
            raise InputError(f"--selector: labels of pods are not compared by size: {key}.")
        if operator == "In" and len(values) == 1 and key not in labels:
            labels[key] = next(iter(values))
        else:
            listed = {"values": sorted(values)} if values else {}
            expressions.append({"key": key, "operator": operator, **listed})
    selector: Document = {"matchLabels": labels} if labels else {}
    return selector | ({"matchExpressions": expressions} if expressions else {})


def read_patch(text: str) -> Any:
    """The JSON or YAML of -p. Raises InputError that says where it is broken."""
    try:
        return load_yaml(text)
    except InputError as error:
        raise error.at("-p") from None
