"""packing {resources}: points for nodes on which the pod strands little. As a filter {maxStranded}: not where too much.

What a node has free of one resource is of no use once another is gone: a node with 40 % of its memory and none of its
cpu left has stranded that memory. So, in shares of what the node has to give,

    stranded = Σ weight · (left of a resource − left of the scarcest) / Σ weight

and a node is ranked by how much that grows if the pod comes: 100 points for the node on which it grows least (or
shrinks most) among those with room for the pod, 0 for the one on which it grows most, in proportion between them. A pod
without a GPU is kept off nodes with free ones, one that needs memory fills nodes whose cpu is gone. All is by requests.
Of a node without room for the pod it has no opinion. As a filter it refuses nodes on which the pod strands more, and
then more than maxStranded in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.engine.requests import read_requests
from wukong.errors import InputError
from wukong.placement.compile import GPU, GPU_NAMES, RESOURCES
from wukong.placement.fleet import Fleet
from wukong.placement.percent import parse_percent
from wukong.placement.rule import Rule
from wukong.semantics.label_syntax import is_label_key

_ALWAYS = ("cpu", "memory")  # counted where nothing is said, beside every extended resource that nodes have
_DECIMALS = 9  # shares that differ by less are the same: floats are not exact


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    resources: dict[str, float] = {}  # as policies name them → how much each counts
    max_stranded: str = ""


class Packing(Rule[Config]):
    name = "packing"
    config = Config
    is_per_pod = True

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        for resource, weight in config.resources.items():
            if not 0 <= weight < np.inf:
                yield f"resources.{resource}: expected how much it counts, 0 or more, got {weight}."
            if resource not in (*RESOURCES, GPU) and not ("/" in resource and is_label_key(resource)):
                yield (
                    f"resources.{resource}: expected cpu, memory, storage, gpu or an extended resource such as "
                    "example.com/fpga. Write its full name."
                )
        if config.resources and sum(weight > 0 for weight in config.resources.values()) < 2:
            yield "resources: expected at least two above 0. One alone strands nothing."

        if type_ == "filter" and not config.max_stranded:
            yield 'maxStranded: expected a percentage such as "30%", got none. A filter needs one.'
        if config.max_stranded and parse_percent(config.max_stranded) is None:
            yield f'maxStranded: expected a percentage such as "30%", got {config.max_stranded!r}.'

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        needed = _read_needed(pod)
        before, after = _compare(config, fleet, needed)
        has_room = _find_room(fleet, needed)
        growth = np.round(after - before, _DECIMALS)
        growth = np.where(has_room, growth, np.nan)
        if not has_room.any():
            return growth
        least, most = np.nanmin(growth), np.nanmax(growth)
        if least == most:
            return np.where(has_room, 100.0, np.nan)
        return 100 * (most - growth) / (most - least)

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        limit = parse_percent(config.max_stranded)
        assert limit is not None
        before, after = _compare(config, fleet, _read_needed(pod))
        refused: Mask = (np.round(after - before, _DECIMALS) > 0) & (100 * after > limit)
        return refused

    def reason(self, config: Config) -> str:
        return f"more than {config.max_stranded} of it would be stranded"


def _compare(config: Config, fleet: Fleet, needed: Mapping[str, int]) -> tuple[Floats, Floats]:
    """[node] what is stranded without the pod, and with it."""
    weights = _weights_of(config, fleet)
    return _count_stranded(fleet, weights, {}), _count_stranded(fleet, weights, needed)


def _weights_of(config: Config, fleet: Fleet) -> dict[str, float]:
    """By the API's names."""
    if not config.resources:
        return dict.fromkeys((*_ALWAYS, *(name for name in fleet.nodes.resources if "/" in name)), 1.0)
    weights: dict[str, float] = {}
    for resource, weight in config.resources.items():
        for name in GPU_NAMES if resource == GPU else (RESOURCES.get(resource, resource),):
            weights[name] = weight
    return weights


def _count_stranded(fleet: Fleet, weights: Mapping[str, float], taken: Mapping[str, int]) -> Floats:
    """[node] the share of it that is stranded once so much more is taken; 0 where one resource or none counts."""
    lefts, counts = [], []
    for name, weight in weights.items():
        free, whole = fleet.free(name), fleet.nodes.allocatable(name)
        if free is None or weight == 0:
            continue
        left: Floats = np.full(fleet.size, np.nan)
        np.divide(np.maximum(free - taken.get(name, 0), 0), whole, out=left, where=whole > 0)
        lefts.append(left)
        counts.append(weight)
    if not lefts:
        return np.zeros(fleet.size)
    left_of = np.stack(lefts)  # [resource, node]
    weight_of = np.where(np.isnan(left_of), 0.0, np.array(counts)[:, None])
    scarcest = np.min(np.where(np.isnan(left_of), np.inf, left_of), axis=0)
    surplus = np.where(weight_of > 0, left_of - scarcest, 0.0)
    total = weight_of.sum(axis=0)
    stranded: Floats = np.zeros(fleet.size)
    np.divide((surplus * weight_of).sum(axis=0), total, out=stranded, where=total > 0)
    return stranded


def _find_room(fleet: Fleet, needed: Mapping[str, int]) -> Mask:
    """[node] whether it has what the pod asks for."""
    has_room: Mask = np.ones(fleet.size, dtype=np.bool_)
    for name, amount in needed.items():
        free = fleet.free(name)
        if amount > 0:
            has_room &= np.zeros(fleet.size, dtype=np.bool_) if free is None else free >= amount
    return has_room


def _read_needed(pod: Pod) -> Mapping[str, int]:
    try:
        return read_requests(pod).needed
    except InputError:  # the API server would not have let it through
        return {}
