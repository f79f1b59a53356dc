"""Workloads as options name them: `deploy/web` in the namespace of -n, `deploy/shop/web` in its own. Pure."""

from __future__ import annotations

from wukong.api.kinds import KINDS
from wukong.api.resources import Key, Resource
from wukong.embedded.scenario.format.durations import read_workload
from wukong.errors import InputError


def read_workload_in(text: str, namespace: str) -> tuple[Resource, Key]:
    """The kind and key that a name stands for. Raises InputError for anything else than a name."""
    kind, slash, name = text.partition("/")
    group_kind, key = read_workload(f"{kind}/{namespace}/{name}" if slash and name and "/" not in name else text)
    return KINDS[group_kind].resource, key


def read_named_value(text: str, example: str) -> tuple[str, str]:
    """`NAME=VALUE` as two texts. Raises InputError with the example for what is none."""
    name, has_value, value = text.partition("=")
    if not has_value or not name or not value:
        raise InputError(f'expected NAME=VALUE such as {example}, got "{text:.200}".')
    return name, value
