"""A grammar of hostile objects, made of our own structs: every kind of the table, every field, right and wrong values.

    grammar = Grammar(random.Random(seed))
    document = grammar.build_document(KINDS["Pod"], "evil-1")    JSON values, with marks for what Python cannot hold
    text = grammar.write_json(document)                          the text that an API server would send, or a broken one

How wrong a document is is drawn for each: some are right in form and only extreme (they get as far as deciding), some
have values of wrong types, some are broken texts. Objects stay in namespaces and under names of the hostile tenant:
what he may not touch on a real cluster he does not touch here. Used by the suites beside it; knows no code under test
but the table of kinds and the structs.
"""

from __future__ import annotations

import json
import os
import random
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from wukong.api.kind_table import Kind
from wukong.api.meta import Object, ObjectMeta
from wukong.api.placement import APPLIES, MODES, RULE_TYPES
from wukong.api.policy_parts import FALLBACKS, PREEMPTION_POLICIES, STRATEGIES
from wukong.placement.rules import BUILT_IN

USUAL_SEED = 20261116
SEED = int(os.environ.get("HOSTILE_SEED", USUAL_SEED))
TENANTS = ("evil", "evil-2")  # his namespaces
OWN_NODES = ("evil-node-1", "evil-node-2")  # nodes that only he uses: pods bound there take nobody's room
NEIGHBOUR_UIDS = ("good-pod-uid", "good-policy-uid", "good-node-uid")

_DEEP = {levels: '{"a":' * levels + "1" + "}" * levels for levels in (20, 120, 1200, 20_000)}
_LISTS = {levels: "[" * levels + "]" * levels for levels in (101, 5000)}
# What json.dumps cannot write: the mark stands in the document, the text takes its place.
RAW = {
    **{f"@raw-deep-{levels}@": text for levels, text in _DEEP.items()},
    **{f"@raw-list-{levels}@": text for levels, text in _LISTS.items()},
    "@raw-digits@": "9" * 5000,
    "@raw-float@": "1e400",
    "@raw-minus@": "-0",
    "@raw-tiny@": "1e-400",
    "@raw-nan@": "NaN",
    "@raw-surrogate@": '"\\ud800"',
    "@raw-nul@": '"\\u0000"',
    "@raw-long@": '"' + "x" * 70_000 + '"',
    "@raw-latin@": '"\udcff\udcfe"',
}
RAW_TEXTS = ("@raw-nul@", "@raw-long@", "@raw-surrogate@", "@raw-latin@")
TEXTS: tuple[str, ...] = (
    "", " ", "a", "-", ".", "..", "/", "a/b", "a//b", "web", "x" * 64, "x" * 254, "x" * 3000, "\x1b[2J\x1b]0;owned\x07",
    "line\nline", "tab\t", "\r", "\x7f", "\x00", "\u2028", "\u202eevil", "\ufeff", "名前", "🐒", "ß" * 63, "%s%n{0}",
    "$(id)", "<script>", "'; DROP TABLE", "../../etc/passwd", "null", "true", "0", "1e9", "yes", "~", "&a *a",
    "{{.}}", "*", "=", "!",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 100, 101, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64,
    -(2**70), "@raw-digits@",
)  # fmt: skip
FLOATS: tuple[Any, ...] = (
    0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 100.0001, 2**53 + 1, "@raw-float@", "@raw-tiny@", "@raw-nan@", "@raw-minus@"
)  # fmt: skip
QUANTITIES: tuple[Any, ...] = (
    "1", "100m", "1Gi", "0", 1, 0, "9E", "8Ei", "9223372036854775807", "9223372036854775808", "-1", "-8Ei", "1e400",
    "1e-400", "1e99999999999", "1E-99999999999", "0.0000000000000000000001", "123456789.123456789Ki", "1n", "1u", "1k",
    "1K", "1ki", "abc", "",
    " 1", "1 ", "+1", "--1", "1..1", ".", "1.", ".5", "0x10", "1_000", "٣", "NaN", "inf", "1Gi1",
    "m", "E", "9" * 400, "0." + "0" * 400 + "1", 1 << 62, 1 << 63, 1 << 70, -1, 0.5, 1e308, "@raw-digits@",
    "@raw-float@", True,
)  # fmt: skip
SANE_QUANTITIES = ("1", "100m", "1Gi", "250m", "2", "64Mi", 1, "110")
TIMES = (
    "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789Z", "0001-01-01T00:00:00Z", "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "+292277026596-12-04T15:30:08Z", "2026-02-30T00:00:00Z",
    "2026-01-01T25:61:61Z", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+99:99", "yesterday", "",
    "0", "-1", "1969-12-31T23:59:59Z", "2026-01-01T00:00:00Z\n",
)  # fmt: skip
# Values that make sense in fields of these names, so that documents get past the first check.
SANE: dict[str, tuple[Any, ...]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "nodeName": ("", "", *OWN_NODES, "no-such-node"),
    "nominatedNodeName": ("", *OWN_NODES),
    "schedulerName": ("default-scheduler", ""),
    "phase": ("Pending", "Running", "Succeeded", "Failed", ""),
    "strategy": STRATEGIES,
    "fallback": FALLBACKS,
    "onDemandBase": (0, 2, "30%", "100%"),
    "spotPercent": (0, 70, 100),
    "className": ("high-priority", "system-node-critical"),
    "mode": MODES,
    "apply": APPLIES,
    "preemptionPolicy": PREEMPTION_POLICIES,
    "threshold": ("70%", "0%", "100%", "12.5%"),
    "resourceType": ("cpu", "memory", "storage", "gpu", "example.com/fpga"),
    "minAvailable": ("1", "500m", "1Gi", 0, "50%", 1),
    "maxUnavailable": ("1", "50%", 1),
    "maxSurge": ("25%", 1),
    "topologyKey": ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"),
    "key": ("app", "zone", "kubernetes.io/hostname", "disk", "karpenter.sh/capacity-type", "metadata.name"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "hostIP": ("", "0.0.0.0", "127.0.0.1", "::"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "status": ("True", "False", "Unknown"),
    "type": ("Ready", "Accepted", "PodScheduled", "RollingUpdate", "OnDelete", "Recreate"),
    "image": ("web:1", "registry.example.com/web@sha256:" + "0" * 64, "web"),
    "weight": (1, 50, 100),
    "maxSkew": (1, 2),
    "hostPort": (0, 80, 8080),
    "replicas": (0, 1, 3),
    "priority": (0, 100, 2_000_000_000),
    "kind": ("ReplicaSet", "Deployment", "Node", "Pod", "Job"),
    "apiVersion": ("apps/v1", "v1", "batch/v1", "placement.novasphere.dev/v1alpha1"),
    "name": ("web", "main", "a", "b"),
}
LABEL_KEYS = (
    "app",
    "zone",
    "disk",
    "kubernetes.io/hostname",
    "karpenter.sh/capacity-type",
    "topology.kubernetes.io/zone",
)
LABEL_VALUES = ("web", "db", "a", "b", "spot", "on-demand", "")
RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "example.com/fpga", "hugepages-2Mi", "nvidia.com/gpu")


class Grammar:
    """Draws documents. `extreme` and `wrong` are the shares of leaves that are so, of the document being drawn."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.extreme = self.wrong = 0.0
        self._number = 0

    # ---- objects

    def build_document(self, kind: Kind, name: str = "") -> dict[str, Any]:
        """An object of a kind, with its kind and apiVersion, under a name of its own (or this one)."""
        self._draw_hostility()
        self._number += 1
        document: dict[str, Any] = self._draw_struct(kind.struct, depth=0)
        head = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        document = {**document, **head, "metadata": self._draw_metadata(kind, name or f"evil-{self._number}")}
        if self.rng.random() < 0.15:
            self._add_unknown_fields(document)
        if self.rng.random() < self.wrong:
            document[self.rng.choice([*document])] = self._draw_wrong_value()
        return document

    def _draw_hostility(self) -> None:
        self.extreme = self.rng.choice((0.0, 0.02, 0.1, 0.5))
        self.wrong = self.rng.choice((0.0, 0.0, 0.0, 0.005, 0.1))

    def _draw_metadata(self, kind: Kind, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self._number)}
        if kind.resource.namespaced:
            metadata["namespace"] = self.rng.choice(TENANTS)
        for field in ("labels", "annotations", "finalizers", "ownerReferences", "generation", "deletionTimestamp"):
            if self.rng.random() < 0.3:
                metadata[field] = self._draw(_fields_of(ObjectMeta)[field], field, depth=2)
        if self.rng.random() < 0.5:
            metadata["creationTimestamp"] = self._draw_text("creationTimestamp")
        if self.rng.random() < 0.1:
            metadata["uid"] = self.rng.choice((*NEIGHBOUR_UIDS, "", None, "uid"))
        if self.rng.random() < 0.1:
            metadata["resourceVersion"] = self.rng.choice(("", None, "x", "-1", "99999999999999999999"))
        if self.rng.random() < self.wrong:
            metadata[self.rng.choice([*metadata])] = self._draw_wrong_value()
        if self.rng.random() < self.wrong / 4:
            metadata.pop("name", None)
        return metadata

    def _add_unknown_fields(self, document: dict[str, Any]) -> None:
        target = document
        while self.rng.random() < 0.5:
            below = [value for value in target.values() if isinstance(value, dict)]
            if not below:
                break
            target = self.rng.choice(below)
        for _ in range(self.rng.choice((1, 3))):
            target[self.rng.choice((*TEXTS, "spec", "status", "items"))] = self._draw_json(2)

    # ---- values by their type

    def _draw_struct(self, struct: type, depth: int) -> dict[str, Any]:
        fields = {}
        for name, type_ in _fields_of(struct).items():
            share = 1.0 if name in _required_of(struct) or depth == 0 else 0.55 if depth < 4 else 0.3
            if self.rng.random() < share:
                fields[name] = self._draw(type_, name, depth + 1)
        if struct.__name__ == "SchedulingRule":
            self._complete_rule(fields, depth)
        if self.wrong and fields and self.rng.random() < self.wrong:
            fields.pop(self.rng.choice([*fields]))
        return fields

    def _complete_rule(self, fields: dict[str, Any], depth: int) -> None:
        """A rule that there is, with a config that its own struct reads, more or less."""
        if self.rng.random() < 0.8:
            rule = self.rng.choice([*BUILT_IN.values()])
            fields |= {"name": rule.name, "type": self.rng.choice(RULE_TYPES)}
            fields["config"] = self._draw_struct(rule.config, depth + 1)
            if fields["type"] != "score":
                fields.pop("weight", None)

    def _draw(self, type_: inspect.Type, name: str, depth: int) -> Any:
        if self.wrong and self.rng.random() < self.wrong:
            return self._draw_wrong_value()
        match type_:
            case inspect.StructType(cls=struct):
                return self._draw_struct(struct, depth)
            case inspect.ListType(item_type=item):
                return [self._draw(item, name, depth + 1) for _ in range(self._draw_length(depth))]
            case inspect.VarTupleType(item_type=item):
                return [self._draw(item, name, depth + 1) for _ in range(self._draw_length(depth))]
            case inspect.DictType(value_type=value):
                return self._draw_map(value, name, depth)
            case inspect.UnionType(types=types):
                return self._draw_union(types, name, depth)
            case inspect.Metadata(type=inner):
                return self._draw(inner, name, depth)
            case inspect.LiteralType(values=values):
                return (
                    self.rng.choice((*values, "Matches", "in", "")) if self._is_extreme() else self.rng.choice(values)
                )
            case inspect.BoolType():
                return self.rng.random() < 0.5
            case inspect.IntType():
                return self._draw_number(name)
            case inspect.FloatType():
                return self.rng.choice(FLOATS) if self._is_extreme() else self.rng.choice((0.0, 0.5, 35.0, 99.0))
            case inspect.NoneType():
                return None
            case inspect.StrType():
                return self._draw_text(name)
            case _:
                return self._draw_json(3)

    def _draw_union(self, types: tuple[inspect.Type, ...], name: str, depth: int) -> Any:
        if {type(entry) for entry in types} >= {inspect.StrType, inspect.IntType}:  # an amount, or a share
            if self._is_extreme():
                return self.rng.choice(QUANTITIES)
            return self.rng.choice(SANE.get(name, SANE_QUANTITIES))
        return self._draw(self.rng.choice(types), name, depth)

    def _draw_map(self, value: inspect.Type, name: str, depth: int) -> dict[str, Any]:
        is_amounts = isinstance(value, inspect.UnionType)
        keys = RESOURCES if is_amounts else LABEL_KEYS
        chosen = [self._draw_key(keys) for _ in range(self._draw_length(depth))]
        if is_amounts or not isinstance(value, inspect.StrType):
            return {key: self._draw(value, name, depth + 1) for key in chosen}
        return {key: self.rng.choice(TEXTS if self._is_extreme() else LABEL_VALUES) for key in chosen}

    def _draw_key(self, keys: tuple[str, ...]) -> str:
        return self.rng.choice(TEXTS) if self._is_extreme() else self.rng.choice(keys)

    def _draw_length(self, depth: int) -> int:
        if self._is_extreme() and self.rng.random() < 0.02 and depth < 4:
            return 300
        return self.rng.choice((0, 1, 1, 2, 3) if depth < 4 else (0, 1, 1, 2))

    def _draw_number(self, name: str) -> Any:
        return self.rng.choice(NUMBERS) if self._is_extreme() else self.rng.choice(SANE.get(name, (0, 1, 2, 30)))

    def _draw_text(self, name: str) -> Any:
        if name.endswith(("Time", "Timestamp")):
            return self.rng.choice(TIMES) if self._is_extreme() else TIMES[0]
        if self._is_extreme():
            return self.rng.choice(TEXTS) if self.rng.random() < 0.95 else self.rng.choice(RAW_TEXTS)
        if name == "uid":
            return self.rng.choice(NEIGHBOUR_UIDS)
        return self.rng.choice(SANE.get(name, ("web", "a", "b", "10", "")))

    def _is_extreme(self) -> bool:
        return self.extreme > 0 and self.rng.random() < self.extreme

    def _draw_wrong_value(self) -> Any:
        return self.rng.choice((None, None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"a": None}, [[]], *RAW))

    def _draw_json(self, depth: int) -> Any:
        """Any JSON value."""
        if depth == 0 or self.rng.random() < 0.5:
            return self.rng.choice((None, True, 1, -1.5, "x", *(self.rng.choice(TEXTS),), *(self.rng.choice([*RAW]),)))
        if self.rng.random() < 0.5:
            return [self._draw_json(depth - 1) for _ in range(self.rng.randrange(4))]
        return {self.rng.choice(TEXTS): self._draw_json(depth - 1) for _ in range(self.rng.randrange(4))}

    # ---- texts

    def write_json(self, document: Any, spoil: float = 0.02) -> bytes:
        """The text of a document; a share of them is broken."""
        data = write_json(document)
        return self.spoil(data) if self.rng.random() < spoil else data

    def spoil(self, data: bytes) -> bytes:
        """A text in which something is cut, doubled, swapped or replaced by bytes that do not belong there."""
        start = self.rng.randrange(len(data) + 1)
        end = min(len(data), start + self.rng.choice((1, 2, 10, 1000)))
        piece = self.rng.choice(
            (b"", b"\x00", b"\xff\xfe", b'"', b"}", b"]", b"{", b",", b"\\", b"\xed\xa0\x80", b"1e999")
        )
        return self.rng.choice((data[:start], data[:start] + piece + data[end:], data + data[start:end], data[start:]))


def write_json(document: Any) -> bytes:
    """The JSON text of a document, with the texts that its marks stand for. Never has a line feed in it."""
    text = json.dumps(document)
    if "@raw-" in text:
        for mark, raw in RAW.items():
            text = text.replace(f'"{mark}"', raw)
    return text.encode(errors="surrogateescape")


def read_back(document: Any) -> Any:
    """The document as a JSON reader would hand it on; None if none could: for what takes documents, not texts."""
    try:
        data = write_json(document)
        return msgspec.json.decode(data) if len(data) < 1 << 20 and b"@raw" not in data else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def shift_seeds(seeds: range) -> range:
    """The same number of other seeds, where HOSTILE_SEED chooses: for suites that number their cases themselves."""
    offset = (SEED - USUAL_SEED) * 1_000_000
    return range(seeds.start + offset, seeds.stop + offset)


@cache
def _fields_of(struct: type) -> dict[str, inspect.Type]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    left_out = ("kind", "apiVersion", "metadata") if issubclass(struct, Object) else ()  # drawn apart
    return {field.encode_name: field.type for field in info.fields if field.encode_name not in left_out}


@cache
def _required_of(struct: type) -> frozenset[str]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return frozenset(field.encode_name for field in info.fields if field.required)
