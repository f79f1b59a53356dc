"""The rule that keeps the pods of a new version away from other versions' nodes: one podAntiAffinity term. Pure.

Used by controllers/rollout. The term is appended to what the author of the template wrote, which stays untouched, and
noted in an annotation of the ReplicaSet: so it is found again, and no term of the author's is ever taken for ours. It
selects the pods of the Rollout (its own selector) whose hash is one of those to be avoided. The hash of a version is
computed without it, so it makes no version of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from wukong.api.core import PodAffinityTerm, WeightedPodAffinityTerm
from wukong.api.json_values import check_depth, load_json
from wukong.api.meta import LabelSelector, LabelSelectorRequirement
from wukong.api.rollout import HASH, HOSTNAME, VersionAntiAffinity
from wukong.errors import InputError
from wukong.ports import Document

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ENTRY_TYPES: dict[str, type] = {REQUIRED: PodAffinityTerm, PREFERRED: WeightedPodAffinityTerm}


class VersionRule(NamedTuple):
    """An entry of one of the two lists of a podAntiAffinity."""

    list_name: str
    entry: Document

    def encode(self) -> str:
        """As the annotation has it."""
        return msgspec.json.encode({self.list_name: self.entry}, order="sorted").decode()


def read_rule(text: str) -> VersionRule | None:
    """The rule that an annotation notes; None if there is none, or somebody wrote something else there."""
    noted = read_note(text)
    if len(noted) != 1:
        return None
    ((list_name, entry),) = noted.items()
    return VersionRule(list_name, entry) if list_name in _ENTRY_TYPES and isinstance(entry, dict) else None


def read_note(text: str) -> Document:
    """What an annotation has as JSON; nothing if it is no object, whoever wrote it."""
    data = text.encode("utf-8", "replace")
    try:
        check_depth(data)
        noted = load_json(data) if data else None
    except InputError:
        return {}
    return noted if isinstance(noted, dict) else {}


def build_rule(
    wanted: VersionAntiAffinity | None, selector: LabelSelector | None, namespace: str, hashes: Iterable[str]
) -> VersionRule | None:
    """The rule against these versions; None if none is asked for, or there is nobody to keep away from."""
    avoided = sorted(set(hashes))
    if wanted is None or not avoided or (wanted.required is None and wanted.preferred is None):
        return None
    own = selector if selector is not None else LabelSelector()
    of_versions = LabelSelectorRequirement(key=HASH, operator="In", values=avoided)
    term = PodAffinityTerm(
        topology_key=wanted.topology_key or HOSTNAME,
        label_selector=LabelSelector(
            match_labels=own.match_labels, match_expressions=[*own.match_expressions, of_versions]
        ),
        namespaces=[namespace],
    )
    if wanted.required is not None:
        return VersionRule(REQUIRED, msgspec.to_builtins(term))
    assert wanted.preferred is not None
    weighted = WeightedPodAffinityTerm(weight=wanted.preferred.weight, pod_affinity_term=term)
    return VersionRule(PREFERRED, msgspec.to_builtins(weighted))


def with_rule(
    affinity: Document | None, wanted: VersionRule | None, present: VersionRule | None = None
) -> Document | None:
    """The affinity with the rule `wanted` at the end of its list, instead of the one that is `present`.

    What becomes empty without a rule is left out, up to the affinity as a whole: None.
    """
    without = affinity if present is None else _without(affinity, present)
    if wanted is None:
        return without
    whole = without or {}
    anti_affinity = whole.get("podAntiAffinity") or {}
    entries = [*(anti_affinity.get(wanted.list_name) or ()), wanted.entry]
    return {**whole, "podAntiAffinity": {**anti_affinity, wanted.list_name: entries}}


def _without(affinity: Document | None, rule: VersionRule) -> Document | None:
    anti_affinity: Document = (affinity or {}).get("podAntiAffinity") or {}
    entries: list[Any] = anti_affinity.get(rule.list_name) or []
    ours = _normalize(rule.list_name, rule.entry)
    places = [index for index, entry in enumerate(entries) if _normalize(rule.list_name, entry) == ours]
    if affinity is None or not places:
        return affinity
    left = [entry for index, entry in enumerate(entries) if index != places[-1]]
    parts = {name: part for name, part in anti_affinity.items() if name != rule.list_name}
    parts |= {rule.list_name: left} if left else {}
    whole = {name: part for name, part in affinity.items() if name != "podAntiAffinity"}
    whole |= {"podAntiAffinity": parts} if parts else {}
    return whole or None


def _normalize(list_name: str, entry: Any) -> Any:
    """An entry without what says nothing, such as a labelSelector that is null; as it is if it cannot be read."""
    try:
        return msgspec.to_builtins(msgspec.convert(entry, _ENTRY_TYPES[list_name]))
    except msgspec.ValidationError:
        return entry
