"""gpu-packing {resource}: fills nodes that have accelerators before it opens the next. As a filter: keeps others off.

Accelerators are dear, and a job that needs eight of them finds no node when each has one taken. So a pod that asks for
some goes where the fewest are left, and (as a filter) a pod that asks for none does not go where some are free.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet
from wukong.placement.rule import Rule


class Config(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    resource: str = "nvidia.com/gpu"


class GpuPacking(Rule[Config]):
    name = "gpu-packing"
    config = Config
    is_per_pod = True  # the answer depends on what the pod asks for

    def problems(self, config: Config, type_: str) -> Iterable[str]:
        if "/" not in config.resource:
            yield f"resource: expected the full name of a resource such as nvidia.com/gpu, got {config.resource!r}."

    def points(self, config: Config, fleet: Fleet, pod: Pod) -> Floats:
        free = _free(config, fleet)
        if not _asks_for(pod, config.resource) or free.max(initial=0) == 0:
            return np.full(fleet.size, np.nan)  # no opinion: 50 points
        return np.where(free > 0, 100 * (1 - (free - 1) / free.max()), 0.0)

    def refuses(self, config: Config, fleet: Fleet, pod: Pod) -> Mask:
        if _asks_for(pod, config.resource):
            return np.zeros(fleet.size, dtype=np.bool_)
        return _free(config, fleet) > 0

    def reason(self, config: Config) -> str:
        return f"kept free for pods that ask for {config.resource}"


def _free(config: Config, fleet: Fleet) -> Floats:
    free = fleet.free(config.resource)
    return np.zeros(fleet.size) if free is None else free.astype(np.float64)


def _asks_for(pod: Pod, resource: str) -> bool:
    return any(resource in container.resources.requests for container in pod.spec.containers)
