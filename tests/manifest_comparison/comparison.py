"""Sends the same objects and changes to both servers, and finds what differs in what they store, change and refuse."""

from __future__ import annotations

import copy
import re
from collections import Counter
from typing import Any, NamedTuple

from embedded.server_comparison import comparable
from manifest_comparison.changes import Change, list_changes
from manifest_comparison.kubectl_apply import NoPatchError, annotate, build_patch
from manifest_comparison.objects import Subject
from wukong.api.field_types import struct_named, type_of
from wukong.api.resources import Key
from wukong.embedded.actors.deployment.revisions import hash_template
from wukong.embedded.store.semantic_equality import is_semantically_equal
from wukong.errors import ClusterError
from wukong.ports import Cluster, PatchBody

Json = dict[str, Any]
_PROBLEM = re.compile(
    r"(?:^|[\[ ])((?:spec|metadata|value|data)[\w.\[\]/-]*): "
    r"(Invalid value|Required value|Forbidden|Unsupported value|Duplicate value|Not found|Too many|Too long|May not be)"
)


class Outcome(NamedTuple):
    """What a server made of a request."""

    stored: Json | None  # None where it was refused
    is_change: bool = False
    is_rollout: bool = False
    error: str = ""
    code: int = 0
    problems: tuple[tuple[str, str], ...] = ()  # path and reason of each problem of a refused object
    message: str = ""  # not compared

    @property
    def compared(self) -> tuple[object, ...]:
        return self[:-1]


class Side:
    """One of the two servers, with the object that is being changed."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.live: Json = {}

    async def create(self, subject: Subject) -> Outcome:
        self.live = {}
        return await self._outcome(self.cluster.create(subject.resource, annotate(subject.before), self.namespace))

    async def change(self, subject: Subject, change: Change) -> Outcome:
        key = Key(self.namespace, subject.before["metadata"]["name"])
        patch = change.patch
        if patch is None:
            type_ = type_of(subject.resource)
            assert type_ is not None
            assert change.manifest is not None
            try:
                patch = PatchBody("strategic", build_patch(type_, change.manifest, self.live))
            except NoPatchError:
                return Outcome(None, error="kubectl")
        return await self._outcome(self.cluster.patch(subject.resource, key, patch))

    async def _outcome(self, request: Any) -> Outcome:
        try:
            after = await request
        except ClusterError as error:
            message = str(error)
            problems = tuple(sorted(set(_PROBLEM.findall(message))))
            return Outcome(None, error=type(error).__name__, code=error.code, problems=problems, message=message)
        before, self.live = self.live, after
        generation = before.get("metadata", {}).get("generation", 0)
        return Outcome(
            _comparable(after),
            is_change=after["metadata"].get("generation", 0) != generation or _comparable(before) != _comparable(after),
            is_rollout=bool(before) and _is_rollout(before, after),
        )


def _is_rollout(before: Json, after: Json) -> bool:
    """As the controllers see it: Deployments compare what templates mean, StatefulSets and DaemonSets their texts."""
    templates = [document["spec"].get("template") or {} for document in (before, after)]
    if before["kind"] == "Deployment":
        return not is_semantically_equal(struct_named("PodTemplateSpec"), *templates)
    return hash_template(templates[0]) != hash_template(templates[1])


def _comparable(document: Json) -> Json:
    """Return the object without what differs between any two servers, its uid wherever it stands."""
    if not document:
        return {}
    uid, result = document["metadata"]["uid"], copy.deepcopy(document)
    generation = result["metadata"].pop("generation", None)
    plain = comparable(result)
    plain["metadata"]["generation"] = generation
    plain.pop("status", None)
    replaced: Json = _without_nulls(_replace(plain, uid))
    return replaced


def _replace(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {name: _replace(entry, uid) for name, entry in value.items()}
    if isinstance(value, list):
        return [_replace(entry, uid) for entry in value]
    return "UID" if value == uid else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value


class Difference(NamedTuple):
    subject: str
    change: str
    real: Outcome
    embedded: Outcome

    def __str__(self) -> str:
        lines = [f"{self.subject}: {self.change}"]
        for name in ("error", "code", "problems", "is_change", "is_rollout"):
            values = getattr(self.real, name), getattr(self.embedded, name)
            if values[0] != values[1]:
                lines.append(f"  {name}: real {values[0]!r}, embedded {values[1]!r}")
        if self.real.stored is not None and self.embedded.stored is not None:
            lines += [f"  {line}" for line in find_differences(self.real.stored, self.embedded.stored)]
        lines += [
            f"  {side}: {outcome.message[:600]}"
            for side, outcome in (("real", self.real), ("embedded", self.embedded))
            if outcome.message
        ]
        return "\n".join(lines)


def find_differences(real: Any, embedded: Any, path: str = "$") -> list[str]:
    if isinstance(real, dict) and isinstance(embedded, dict):
        names = sorted({*real, *embedded})
        return [
            line
            for name in names
            for line in find_differences(real.get(name, "absent"), embedded.get(name, "absent"), f"{path}.{name}")
        ]
    if isinstance(real, list) and isinstance(embedded, list) and len(real) == len(embedded):
        return [
            line
            for index, pair in enumerate(zip(real, embedded, strict=True))
            for line in find_differences(*pair, f"{path}[{index}]")
        ]
    return [] if real == embedded else [f"{path}: real {real!r:.300}, embedded {embedded!r:.300}"]


class Comparison:
    """Counts what was compared, and keeps what differed."""

    def __init__(self, real: Cluster, embedded: Cluster, namespaces: tuple[str, str]) -> None:
        self.sides = Side(real, namespaces[0]), Side(embedded, namespaces[1])
        self.counts: Counter[str] = Counter()
        self.differences: list[Difference] = []

    async def play(self, subject: Subject, seed: str, most: int = 4) -> None:
        """Create an object, change it again and again, and compare every answer."""
        first = [await side.create(subject) for side in self.sides]
        if not self._compare(subject, "created", first[0], first[1], "objects") or first[0].stored is None:
            return
        for change in list_changes(subject, seed, most):
            outcomes = [await side.change(subject, change) for side in self.sides]
            if not self._compare(subject, change.title, outcomes[0], outcomes[1], "changes"):
                return  # what follows would differ for the same reason

    def _compare(self, subject: Subject, change: str, real: Outcome, embedded: Outcome, counted: str) -> bool:
        """Return whether both outcomes are the same, and count them."""
        self.counts[counted] += 1
        self.counts[f"{counted} refused"] += real.stored is None
        self.counts["no change"] += counted == "changes" and real.stored is not None and not real.is_change
        self.counts["rollouts"] += counted == "changes" and real.is_rollout
        if real.compared != embedded.compared:
            self.differences.append(Difference(subject.title, change, real, embedded))
        return real.compared == embedded.compared
