"""Builds the CustomResourceDefinitions of our kinds from the structs that read them.

Printed by `wukong manifests crds` and kept in deploy/crds. A field's schema is made from its type and from the
annotations beside it in api.placement, api.rollout and api.vm. What our structs share with Kubernetes' own (label
selectors, affinity terms) gets its bounds in api.shared_schemas: the API server refuses CEL rules whose cost nothing
bounds. A default is written only where an annotation says so; the defaults of structs are only ours.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.node_notices import NodeNotice
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Resource
from wukong.api.rollout import LONGEST_NAME as LONGEST_ROLLOUT_NAME
from wukong.api.rollout import Rollout
from wukong.api.shared_schemas import SHARED_STRUCTS
from wukong.api.spot import Move
from wukong.api.vm import LONGEST_NAME, Wukong

Schema = dict[str, Any]


class Definition(msgspec.Struct, frozen=True):
    """What the definition of a kind has beyond its struct."""

    struct: type[Object]
    short: str
    columns: tuple[Schema, ...]
    rules: tuple[Schema, ...] = ()  # CEL about the object as a whole, its name too
    longest_name: int | None = None  # where a name must be shorter than the API server wants it anyway
    scale: Schema | None = None  # the subresource, where autoscalers set its size


# A ClusterPlacementPolicy of this name holds where no other policy does: that is what selects its pods.
_DEFAULT_SELECTS_NOTHING = {
    "rule": "self.metadata.name != 'default' || !(has(self.spec.selector) || has(self.spec.namespaceSelector))",
    "message": "expected no selector and no namespaceSelector in the policy named default: it holds wherever no other "
    "policy matches. Leave them out, or give this policy another name.",
    "fieldPath": ".spec",
}
# A VM's name is the value of a label and its guest's hostname; with replicas an index of up to three digits follows.
_NAME_FITS = {
    "rule": f"size(self.metadata.name) <= (has(self.spec.replicas) ? {LONGEST_NAME - 4} : {LONGEST_NAME})",
    "message": f"expected a name of at most {LONGEST_NAME} characters, or {LONGEST_NAME - 4} with replicas: it is a "
    "label and a hostname",
    "fieldPath": ".metadata.name",
}
_REPLICAS_STAY = {
    "rule": "has(self.spec.replicas) == has(oldSelf.spec.replicas)",
    "message": "expected replicas to stay given, or absent: it decides how the virtual machines are named. Make a new "
    "Wukong instead",
    "fieldPath": ".spec.replicas",
}
_AGE: Schema = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_POLICY_COLUMNS: tuple[Schema, ...] = (
    {"name": "Strategy", "type": "string", "jsonPath": ".spec.capacity.strategy"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
    {"name": "Accepted", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Accepted")].status'},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Accepted")].reason', "priority": 1},
    {
        "name": "Message",
        "type": "string",
        "jsonPath": '.status.conditions[?(@.type=="Accepted")].message',
        "priority": 1,
    },
    _AGE,
)
_WUKONG_COLUMNS: tuple[Schema, ...] = (
    {"name": "VMs", "type": "integer", "jsonPath": ".status.replicas"},
    {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
    {"name": "Node", "type": "string", "jsonPath": ".status.node"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.reason"},
    _AGE,
)
_MOVE_COLUMNS: tuple[Schema, ...] = (
    {"name": "Kind", "type": "string", "jsonPath": ".spec.owner.kind"},
    {"name": "Workload", "type": "string", "jsonPath": ".spec.owner.name"},
    {"name": "From", "type": "integer", "jsonPath": ".spec.original"},
    {"name": "To", "type": "integer", "jsonPath": ".spec.surged"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Message", "type": "string", "jsonPath": ".status.message"},
    _AGE,
)
_NOTICE_COLUMNS: tuple[Schema, ...] = (
    {"name": "Node", "type": "string", "jsonPath": ".spec.node"},
    {"name": "Course", "type": "string", "jsonPath": ".spec.course"},
    {"name": "Pods", "type": "integer", "jsonPath": ".status.total"},
    {"name": "Lost", "type": "integer", "jsonPath": ".status.lost"},
    {"name": "Short", "type": "integer", "jsonPath": ".status.shortSeconds"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Outcome", "type": "string", "jsonPath": ".status.outcome"},
    {"name": "Source", "type": "string", "jsonPath": ".spec.source", "priority": 1},
    _AGE,
)
_ROLLOUT_COLUMNS: tuple[Schema, ...] = (
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
    {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
    {"name": "Up-to-date", "type": "integer", "jsonPath": ".status.updatedReplicas"},
    {"name": "Available", "type": "integer", "jsonPath": ".status.availableReplicas"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1},
    _AGE,
)
_ROLLOUT_SCALE: Schema = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
DEFINITIONS = (
    Definition(PlacementPolicy, "pp", _POLICY_COLUMNS),
    Definition(ClusterPlacementPolicy, "cpp", _POLICY_COLUMNS, (_DEFAULT_SELECTS_NOTHING,)),
    Definition(Move, "mv", _MOVE_COLUMNS),
    Definition(NodeNotice, "nn", _NOTICE_COLUMNS),
    Definition(Rollout, "wro", _ROLLOUT_COLUMNS, longest_name=LONGEST_ROLLOUT_NAME, scale=_ROLLOUT_SCALE),
    Definition(Wukong, "wk", _WUKONG_COLUMNS, (_NAME_FITS, _REPLICAS_STAY), LONGEST_NAME),
)


def build_crds() -> list[Schema]:
    """Return all definitions, ready to be applied. They share no parts, so YAML needs no anchors."""
    documents: list[Schema] = msgspec.json.decode(_encode_crds())
    return documents


@cache
def _encode_crds() -> bytes:
    """All definitions as JSON, worked out once: every embedded cluster has them."""
    return msgspec.json.encode([_build_document(definition) for definition in DEFINITIONS])


def file_name_of(document: Schema) -> str:
    """`placement.novasphere.dev_placementpolicies.yaml`, as such files are usually called."""
    return f"{document['spec']['group']}_{document['spec']['names']['plural']}.yaml"


def schema_of(struct: type) -> Schema:
    """Return the structural schema of a struct, nested structs written out in place."""
    return _schema_of_type(inspect.type_info(struct))


def _build_document(definition: Definition) -> Schema:
    kind = KINDS.of_struct(definition.struct)
    assert kind is not None, f"{definition.struct.__name__} is not in the table of kinds"
    resource = kind.resource
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [definition.short],
                "categories": ["wukong"],
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_build_version(definition, resource)],
        },
    }


def _build_version(definition: Definition, resource: Resource) -> Schema:
    schema = schema_of(definition.struct)
    metadata: Schema = {"type": "object"}  # the API server knows the rest of it better than we do
    if definition.longest_name is not None:
        metadata["properties"] = {"name": {"type": "string", "maxLength": definition.longest_name}}
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}
    schema["required"] = ["spec"]
    if definition.rules:
        schema["x-kubernetes-validations"] = definition.rules
    return {
        "name": resource.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": definition.columns,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": definition.scale} if definition.scale is not None else {})},
    }


# ---- from types to schemas


def _schema_of_type(type_: inspect.Type) -> Schema:
    """Return the schema of a type. Raises TypeError for a type that no API struct has had so far."""
    match type_:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return {**_schema_of_type(inner), **(extra or {})}
        case inspect.UnionType(types=types):
            return _schema_of_union([inner for inner in types if not isinstance(inner, inspect.NoneType)])
        case inspect.StructType():
            return _schema_of_struct(type_)
        case inspect.ListType(item_type=item):
            return {"type": "array", "items": _schema_of_type(item)}
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object"}
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema_of_type(value)}
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
    if type(type_) in _SCALAR_TYPES:
        return {"type": _SCALAR_TYPES[type(type_)]}
    raise TypeError(f"no schema is known for {type_}")


def _schema_of_union(types: list[inspect.Type]) -> Schema:
    """Return the schema of a union: None only means that the field may be absent, text or number is int-or-string."""
    if len(types) == 1:
        return _schema_of_type(types[0])
    if {type(inner) for inner in types} == {inspect.StrType, inspect.IntType}:
        return {"x-kubernetes-int-or-string": True}
    raise TypeError(f"no schema is known for a choice of {types}")


def _schema_of_struct(struct: inspect.StructType) -> Schema:
    extra = SHARED_STRUCTS.get(struct.cls, {})
    schema: Schema = {"type": "object"}
    if struct.cls.__doc__:
        schema["description"] = struct.cls.__doc__.split("\n\n")[0]
    schema["properties"] = {
        field.encode_name: {**_schema_of_type(field.type), **extra.get(field.encode_name, {})}
        for field in struct.fields
    }
    if required := [field.encode_name for field in struct.fields if field.required]:
        schema["required"] = required
    return {**schema, **extra.get("", {})}


_SCALAR_TYPES: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
}
