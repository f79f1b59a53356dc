"""What the labels of free resources of a node should be: the largest floor somebody asks for that the node meets.

    floors asked for: memory 4Gi, memory 16Gi, gpu 1        free: 7,936 Mi, no GPU
    free.novasphere.dev/memory: "4096"   free.novasphere.dev/gpu: "0"

That answers every floor exactly as the amount itself would, and it moves only when a floor is crossed: a node's label
is an update that every watcher of nodes hears, and every pod that waits is tried again for it. A label never promises
what is not there: one above what is free is lowered at once, and so is one that is missing, for to node affinity that
says that nothing is known. What may be promised more, and a label that nobody asks for any more, wait: so a node where
pods come and go does not flutter. Pure; called by the load controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from wukong.controllers.load.floor_demand import largest_met
from wukong.controllers.load.usage_labels import LabelPlan, Settings
from wukong.engine import Snapshot
from wukong.placement.compile import GPU, RESOURCES
from wukong.placement.free_labels import FREE_PREFIX, free_label_of, free_label_value, resources_of

MOST_LABELS = 32  # of free resources on a node: anybody who may create a policy may name thousands
_COMMON = (*RESOURCES, GPU)


class FreeSettings(msgspec.Struct, frozen=True):
    prefix: str = FREE_PREFIX
    quiet_seconds: float = Settings().quiet_seconds  # a node is promised more at most so often


def plan_free_labels(
    current: Mapping[str, str],
    wanted: Mapping[str, tuple[int, int]],
    changed_at: float | None,
    settings: FreeSettings,
    now: float,
) -> LabelPlan:
    """What to change on a node that has the labels `current`, last changed by us at `changed_at`.

    `wanted` has by label what it should say, and what is free: both in its unit.
    """
    at_once: dict[str, str | None] = {}
    later: dict[str, str | None] = {}
    for key, (value, free) in wanted.items():
        text = current.get(key)
        if text == str(value):
            continue
        is_promised = text is not None and text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= free
        (later if is_promised else at_once)[key] = str(value)
    later |= {key: None for key in current if key.startswith(f"{settings.prefix}/") and key not in wanted}
    wait = 0.0 if changed_at is None else changed_at + settings.quiet_seconds - now
    if wait <= 0 and not at_once:
        return LabelPlan(later)
    # Not together with the others: a node that is promised more whenever it has less of something else would flutter.
    return LabelPlan(at_once, again_after=(settings.quiet_seconds if at_once else wait) if later else None)


def find_wanted_labels(
    snapshot: Snapshot, node: str, asked: Mapping[str, Sequence[int]], settings: FreeSettings
) -> dict[str, tuple[int, int]]:
    """By label of this node, what it should say and what is free, in its unit."""
    row = snapshot.row_of.get(node)
    if row is None:
        return {}
    wanted: dict[str, tuple[int, int]] = {}
    for resource_type in choose_resources(snapshot, asked):
        free = int(free_label_value(resource_type, _read_free(snapshot, row, resource_type)))
        wanted[free_label_of(resource_type, settings.prefix)] = largest_met(asked[resource_type], free), free
    return wanted


def choose_resources(snapshot: Snapshot, asked: Mapping[str, Sequence[int]]) -> list[str]:
    """The resource types that get a label. Where there are too many: common ones, those that nodes offer, others."""
    if len(asked) <= MOST_LABELS:
        return sorted(asked)

    def rank(resource_type: str) -> tuple[bool, bool, str]:
        return resource_type not in _COMMON, resource_type not in snapshot.lines, resource_type

    return sorted(asked, key=rank)[:MOST_LABELS]


def _read_free(snapshot: Snapshot, row: int, resource_type: str) -> int:
    """Allocatable less the requests of the node's pods, in the scheduler's unit: of several resources the most."""
    amounts = [0]
    for resource in resources_of(resource_type):
        line = snapshot.lines.get(resource)
        if line is not None and line < len(snapshot.room):  # the table of lines is shared with forks
            amounts.append(int(snapshot.room[line, row]) - int(snapshot.load[line, row]))
    return max(amounts)
