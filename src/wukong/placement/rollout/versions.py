"""A version of a Rollout: the hash of its template, and the template as its ReplicaSet gets it. Pure.

Used by controllers/rollout and by `wukong rollout`. What says nothing (null, a creationTimestamp) makes no version.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from wukong.api.rollout import HASH
from wukong.placement.rollout.version_rule import VersionRule, with_rule
from wukong.ports import Document

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes writes hashes: nobody reads a word in them
_LENGTH = 10


def hash_template(template: Document) -> str:
    """The name of the version that this template is. The rule that keeps versions apart is not in it."""
    text = msgspec.json.encode(_without_nulls(template), order="sorted")
    number, word = int.from_bytes(hashlib.sha256(text).digest()[:8], "big"), ""
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_LETTERS))
        word += _LETTERS[digit]
    return word


def build_template(template: Document, version: str, rule: VersionRule | None) -> Document:
    """The template of a version's ReplicaSet: with its hash as a label, and with the rule."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {**(meta.get("labels") or {}), HASH: version}
    affinity = with_rule(spec.get("affinity"), rule)
    placed = {**spec, "affinity": affinity} if affinity is not None or "affinity" in spec else spec
    return {**template, "metadata": {**meta, "labels": labels}, "spec": placed}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_nulls(part)
            for name, part in value.items()
            if part is not None and name != "creationTimestamp"
        }
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
