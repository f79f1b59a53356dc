"""latency {maxMillis, label | from, topologyKey, matrix}: points for nodes that are near. As a filter: no others.

Milliseconds come from a node label (`label`), or from a matrix: `from` names where the traffic comes from, the node's
`topologyKey` (its zone) where it goes to. The matrix stands in the config, or in the file given to `wukong run`.
100 points for 0 ms, 0 for `maxMillis` (100) and beyond; 50 where nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.api.decode import readable
from wukong.api.documents import load_yaml
from wukong.engine.arrays import Floats, Mask
from wukong.errors import InputError
from wukong.placement.fleet import Fleet, Latencies
from wukong.placement.prices import ZONE_LABEL
from wukong.placement.rule import Rule


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    label: str = ""
    origin: str = msgspec.field(name="from", default="")
    topology_key: str = ZONE_LABEL
    matrix: dict[str, dict[str, float]] = {}
    max_millis: float = 100.0


class Latency(Rule[Config]):
    name = "latency"
    config = Config
    is_steady = True

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        if bool(config.label) == bool(config.origin):
            yield "label: expected either label (a node label in milliseconds) or from (a place in the matrix)."
        if not 0 < config.max_millis < np.inf:
            yield f"maxMillis: expected more than 0, got {config.max_millis}."
        yield from _find_matrix_problems(config.matrix, "matrix")

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        return 100 * (1 - np.clip(_latencies_of(config, fleet) / config.max_millis, 0, 1))

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        return _latencies_of(config, fleet) > config.max_millis

    def reason(self, config: Config) -> str:
        return f"farther than {config.max_millis:g} ms"


def read_latencies(data: bytes) -> Latencies:
    """A matrix file: `{zone-a: {zone-a: 0.2, zone-b: 1.4}}` in YAML. Raises InputError with every problem."""
    try:
        document = load_yaml(data)
        matrix = msgspec.convert({} if document is None else document, dict[str, dict[str, float]])
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    problems = list(_find_matrix_problems(matrix, "$"))
    if problems:
        raise InputError(*problems)
    return matrix


def _latencies_of(config: Config, fleet: Fleet) -> Floats:
    if config.label:
        return fleet.numbers(config.label)
    known = (config.matrix or fleet.latencies).get(config.origin, {})
    return np.array([known.get(place or "", np.nan) for place in fleet.column(config.topology_key)], dtype=np.float64)


def _find_matrix_problems(matrix: Latencies, path: str) -> Iterable[str]:
    for origin, row in matrix.items():
        for target, millis in row.items():
            if not 0 <= millis < np.inf:
                yield f"{path}.{origin}.{target}: expected milliseconds, 0 or more, got {millis}."
