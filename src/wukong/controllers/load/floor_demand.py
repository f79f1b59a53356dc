"""Which floors of free resources somebody asks for: by resource type, the amounts in the unit of its label.

A derived index of the mirror, kept current at the cost of the policy or Wukong that changed. Read by the load
controller, which keeps a label of a resource only while somebody asks for it. What makes no sense asks for nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, WUKONGS
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy, ResourceRequirement
from wukong.api.resources import Key
from wukong.api.vm import Wukong
from wukong.errors import InputError
from wukong.placement.compile import GPU, RESOURCES
from wukong.placement.free_labels import free_amount
from wukong.placement.limits import MOST_FLOORS
from wukong.placement.vm.node_affinity import gpu_types_of
from wukong.placement.wukong_plan import MOST_DEVICES
from wukong.semantics.label_syntax import is_label_key

ASKING = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, WUKONGS)
Floor = tuple[str, int]  # resource type, amount in the unit of its label


class FloorDemand:
    kinds: ClassVar[frozenset[str]] = frozenset(resource.group_kind for resource in ASKING)

    def __init__(self) -> None:
        self.version = 0  # another number whenever a floor came that nobody had, or one went that nobody has
        self._counts: Counter[Floor] = Counter()  # how many objects ask for it
        self._amounts: dict[str, list[int]] = {}  # resource type → amounts, sorted

    def __bool__(self) -> bool:
        """Whether anybody asks for anything."""
        return bool(self._amounts)

    @property
    def amounts(self) -> Mapping[str, Sequence[int]]:
        """Resource type → the amounts that are asked for, each once, the smallest first."""
        return self._amounts

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before, after = find_floors(old), find_floors(new)
        for floor in after - before:
            self._counts[floor] += 1
            if self._counts[floor] == 1:
                self._add(*floor)
        for floor in before - after:
            self._counts[floor] -= 1
            if not self._counts[floor]:
                self._remove(*floor)

    def fork(self) -> FloorDemand:
        copy = FloorDemand()
        copy.version, copy._counts = self.version, Counter(self._counts)
        copy._amounts = {resource_type: list(amounts) for resource_type, amounts in self._amounts.items()}
        return copy

    def _add(self, resource_type: str, amount: int) -> None:
        insort(self._amounts.setdefault(resource_type, []), amount)
        self.version += 1

    def _remove(self, resource_type: str, amount: int) -> None:
        del self._counts[resource_type, amount]
        amounts = self._amounts[resource_type]
        del amounts[bisect_left(amounts, amount)]
        if not amounts:
            del self._amounts[resource_type]
        self.version += 1


def largest_met(amounts: Sequence[int], free: int) -> int:
    """The largest of these amounts, smallest first, that is free; 0 if none is."""
    number = bisect_right(amounts, free)
    return amounts[number - 1] if number else 0


def find_floors(subject: Object | None) -> frozenset[Floor]:
    """The floors that a policy or a Wukong asks for. Of a Wukong `gpu` means the devices that it names, if any."""
    if not isinstance(subject, PlacementPolicy | ClusterPlacementPolicy | Wukong):
        return frozenset()
    affinity = subject.spec.scheduling.resource_affinity if subject.spec.scheduling is not None else None
    if affinity is None or not affinity.required_resources or len(affinity.required_resources) > MOST_FLOORS:
        return frozenset()  # with more it is not accepted
    gpus: tuple[str, ...] = (GPU,)
    if isinstance(subject, Wukong):
        if len(subject.spec.gpus) > MOST_DEVICES:
            return frozenset()
        gpus = gpu_types_of(subject)
    return frozenset(floor for entry in affinity.required_resources for floor in _read_floors(entry, gpus))


def _read_floors(entry: ResourceRequirement, gpus: Sequence[str]) -> list[Floor]:
    types = gpus if entry.resource_type == GPU else (entry.resource_type,)
    try:
        floors = [(name, free_amount(name, entry.min_available)) for name in types if _is_resource_type(name)]
    except InputError:
        return []
    return [floor for floor in floors if floor[1] > 0]


def _is_resource_type(name: str) -> bool:
    return name in RESOURCES or name == GPU or ("/" in name and is_label_key(name))
