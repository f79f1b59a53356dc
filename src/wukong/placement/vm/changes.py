"""What a change of a VirtualMachine's spec means for the machine that runs. Pure.

Read from KubeVirt 1.7 (LiveUpdate, its default since 1.6) and seen on it:

    affinity, nodeSelector, tolerations        NEXT_POD: copied into the instance; the running pod stays where it is
    memory.guest, more of it                   LIVE: by a migration, up to four times what it started with
    an interface more                          LIVE: plugged in by a migration
    template labels and annotations            AFTER_RESTART: nothing at all until then, and nobody says so
    everything else in the template's spec     RESTART_REQUIRED: KubeVirt sets the condition, and keeps it until a
                                               restart; while it is set NEXT_POD changes are not copied either
    beside the template (runStrategy, …)       LIVE

Whether memory can really be plugged in KubeVirt decides (only where the machine can migrate, from 1Gi on); where it
cannot, its condition RestartRequired says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from wukong.api.documents import path_of
from wukong.api.quantity import parse_quantity
from wukong.errors import InputError

Spec = Mapping[str, Any]
_COPIED = ("affinity", "nodeSelector", "tolerations")
# What is gone from the desired spec is removed by the apply. Elsewhere KubeVirt's own defaults look the same as that.
_REMOVABLE = (
    *_COPIED,
    *("topologySpreadConstraints", "priorityClassName", "schedulerName", "readinessProbe", "livenessProbe"),
    *("volumes", "networks", "terminationGracePeriodSeconds"),
)
_HOTPLUG_RATIO = 4  # maxGuest is so many times the guest memory at start


class ChangeEffect(Enum):
    """When a change reaches the machine."""

    NOTHING = "nothing"  # it changes nothing that runs
    LIVE = "live"  # at once, without a restart
    NEXT_POD = "next-pod"  # obeyed by the next pod: of a migration, or of a restart
    RESTART_REQUIRED = "restart-required"  # KubeVirt says RestartRequired
    AFTER_RESTART = "after-restart"  # from the next start on, and nobody says so


def find_change_effects(live_spec: Spec, desired_spec: Spec) -> list[tuple[str, ChangeEffect]]:
    """Every field of a VirtualMachine's spec that is to change, by its path, with what it means. Sorted by path."""
    return sorted(_find_changes(live_spec, desired_spec), key=lambda change: change[0])


def _find_changes(live: Spec, desired: Spec) -> Iterator[tuple[str, ChangeEffect]]:
    for name, value in desired.items():
        if name != "template" and not is_within(value, live.get(name)):
            yield f"spec.{name}", ChangeEffect.LIVE
    live_template, template = _map_at(live, "template"), _map_at(desired, "template")
    for part in ("labels", "annotations"):
        live_words = _map_at(live_template, "metadata", part)
        words = _map_at(template, "metadata", part)
        gone = live_words.keys() - words.keys() if part == "labels" else set()
        for key in sorted({*words, *gone}):
            if words.get(key) != live_words.get(key):
                yield path_of(f"spec.template.metadata.{part}", key), ChangeEffect.AFTER_RESTART
    yield from _find_template_changes(_map_at(live_template, "spec"), _map_at(template, "spec"))


def _find_template_changes(live: Spec, desired: Spec) -> Iterator[tuple[str, ChangeEffect]]:
    path = "spec.template.spec"
    for name, value in desired.items():
        if name in ("domain", "networks") or is_within(value, live.get(name), is_whole=name in _COPIED):
            continue
        yield f"{path}.{name}", ChangeEffect.NEXT_POD if name in _COPIED else ChangeEffect.RESTART_REQUIRED
    for name in _REMOVABLE:
        if live.get(name) and name not in desired:
            yield f"{path}.{name}", ChangeEffect.NEXT_POD if name in _COPIED else ChangeEffect.RESTART_REQUIRED
    if "networks" in desired and not is_within(desired["networks"], live.get("networks")):
        yield f"{path}.networks", _effect_of_named(live.get("networks"), desired["networks"])
    yield from _find_domain_changes(_map_at(live, "domain"), _map_at(desired, "domain"))


def _find_domain_changes(live: Spec, desired: Spec) -> Iterator[tuple[str, ChangeEffect]]:
    path = "spec.template.spec.domain"
    for name, value in desired.items():
        for field, entry in value.items() if isinstance(value, Mapping) else ():
            live_entry = _map_at(live, name).get(field)
            if not is_within(entry, live_entry):
                yield f"{path}.{name}.{field}", _effect_of_domain_field(name, field, live_entry, entry)
    for field in ("disks", "gpus"):
        if _map_at(live, "devices").get(field) and field not in _map_at(desired, "devices"):
            yield f"{path}.devices.{field}", ChangeEffect.RESTART_REQUIRED


def _effect_of_domain_field(part: str, field: str, live: Any, desired: Any) -> ChangeEffect:
    if (part, field) == ("memory", "guest"):
        before, after = _amount_of(live), _amount_of(desired)
        can_grow = before is not None and after is not None and before < after <= before * _HOTPLUG_RATIO
        return ChangeEffect.LIVE if can_grow else ChangeEffect.RESTART_REQUIRED
    if (part, field) == ("devices", "interfaces"):
        return _effect_of_named(live, desired)
    return ChangeEffect.RESTART_REQUIRED


def _effect_of_named(live: Any, desired: Any) -> ChangeEffect:
    """Interfaces and networks can be added to a running machine; none can be changed or taken away so."""
    desired_by_name = {entry.get("name"): entry for entry in desired if isinstance(entry, Mapping)}
    for entry in live or ():
        if not is_within(desired_by_name.get(entry.get("name")), entry) or entry.get("name") not in desired_by_name:
            return ChangeEffect.RESTART_REQUIRED
    return ChangeEffect.LIVE


def is_within(desired: Any, live: Any, is_whole: bool = False) -> bool:
    """Whether `live` says all that `desired` says; KubeVirt adds defaults of its own, so it may say more.

    Lists are compared entry by entry, amounts by value. `is_whole`: maps may not say more either.
    """
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return not desired and live is None
        if is_whole and live.keys() - desired.keys():
            return False
        return all(is_within(value, live.get(name), is_whole) for name, value in desired.items())
    if isinstance(desired, list):
        return (
            isinstance(live, list)
            and len(desired) == len(live)
            and all(is_within(value, entry, is_whole) for value, entry in zip(desired, live, strict=True))
        )
    if desired == live:
        return True
    amount = _amount_of(desired)
    return amount is not None and amount == _amount_of(live)


def _amount_of(value: Any) -> int | None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    try:
        return parse_quantity(value)
    except InputError:
        return None


def _map_at(document: Spec, *names: str) -> Spec:
    for name in names:
        entry = document.get(name)
        document = entry if isinstance(entry, Mapping) else {}
    return document
