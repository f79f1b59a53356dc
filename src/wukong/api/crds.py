"""The CustomResourceDefinitions of our kinds, made of the structs that read them.

Printed by `wukong manifests crds` and kept in deploy/crds. A field's type, and the words beside it in api.placement,
make its schema; what our structs share with Kubernetes' own (label selectors) gets its bounds here, for the API server
refuses CEL rules whose cost nothing bounds. A default is written only where the words say so, for those of structs are
only ours.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from wukong.api.kinds import KINDS
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Resource

Schema = dict[str, Any]


class Names(msgspec.Struct, frozen=True):
    """What a kind's definition says that its struct does not."""

    struct: type[Object]
    short: str
    rules: tuple[Schema, ...] = ()  # CEL about the object as a whole, its name too


# A ClusterPlacementPolicy of this name holds where no other policy does: that is what selects its pods.
_DEFAULT_SELECTS_NOTHING = {
    "rule": "self.metadata.name != 'default' || !(has(self.spec.selector) || has(self.spec.namespaceSelector))",
    "message": "expected no selector and no namespaceSelector in the policy named default: it holds wherever no other "
    "policy matches. Leave them out, or give this policy another name.",
    "fieldPath": ".spec",
}
DEFINITIONS = (
    Names(PlacementPolicy, "pp"),
    Names(ClusterPlacementPolicy, "cpp", (_DEFAULT_SELECTS_NOTHING,)),
)
COLUMNS: list[Schema] = [
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
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
_LABEL_VALUE: Schema = {"maxLength": 63}
_OPERATOR_AND_VALUES = {
    "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
    ": !has(self.values) || size(self.values) == 0",
    "message": "expected values with the operators In and NotIn, and none with Exists and DoesNotExist",
    "fieldPath": ".values",
}
# Words for structs that are not ours alone: of the struct itself (""), and of its fields.
_SHARED: dict[type, dict[str, Schema]] = {
    LabelSelector: {
        "": {"description": "Labels, as everywhere in Kubernetes.", "x-kubernetes-map-type": "atomic"},
        "matchLabels": {"maxProperties": 32, "additionalProperties": {"type": "string", **_LABEL_VALUE}},
        "matchExpressions": {"maxItems": 32, "x-kubernetes-list-type": "atomic"},
    },
    LabelSelectorRequirement: {
        "": {"x-kubernetes-validations": [_OPERATOR_AND_VALUES]},
        "key": {"maxLength": 317},
        "operator": {"maxLength": 16},
        "values": {
            "maxItems": 64,
            "items": {"type": "string", **_LABEL_VALUE},
            "x-kubernetes-list-type": "atomic",
        },
    },
}


def crds() -> list[Schema]:
    """Both documents, ready to be applied. No part of them is shared, so YAML needs no anchors."""
    documents: list[Schema] = msgspec.json.decode(msgspec.json.encode([_document(names) for names in DEFINITIONS]))
    return documents


def file_name(document: Schema) -> str:
    """`placement.novasphere.dev_placementpolicies.yaml`, as such files are usually called."""
    return f"{document['spec']['group']}_{document['spec']['names']['plural']}.yaml"


def schema_of(struct: type) -> Schema:
    """The structural schema of a struct, nested structs written out in place."""
    return _schema(inspect.type_info(struct))


def _document(names: Names) -> Schema:
    kind = KINDS.of_struct(names.struct)
    assert kind is not None, f"{names.struct.__name__} is not in the table of kinds"
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
                "shortNames": [names.short],
                "categories": ["wukong"],
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(names, resource)],
        },
    }


def _version(names: Names, resource: Resource) -> Schema:
    schema = schema_of(names.struct)
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _OBJECT}
    schema["required"] = ["spec"]
    if names.rules:
        schema["x-kubernetes-validations"] = names.rules
    return {
        "name": resource.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": COLUMNS,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


# ---- from types to schemas

_OBJECT: Schema = {"type": "object"}  # the API server knows metadata better than we do


def _schema(kind: inspect.Type) -> Schema:
    """Raises TypeError for a type no API struct has had so far."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=words):
            return {**_schema(inner), **(words or {})}
        case inspect.UnionType(types=types):
            return _union([inner for inner in types if not isinstance(inner, inspect.NoneType)])
        case inspect.StructType():
            return _struct(kind)
        case inspect.ListType(item_type=item):
            return {"type": "array", "items": _schema(item)}
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object"}
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value)}
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
    if type(kind) in _PLAIN:
        return {"type": _PLAIN[type(kind)]}
    raise TypeError(f"no schema is known for {kind}")


def _union(types: list[inspect.Type]) -> Schema:
    """None beside a type only says that the field may be absent. Text or number is Kubernetes' int-or-string."""
    if len(types) == 1:
        return _schema(types[0])
    if {type(inner) for inner in types} == {inspect.StrType, inspect.IntType}:
        return {"x-kubernetes-int-or-string": True}
    raise TypeError(f"no schema is known for a choice of {types}")


def _struct(kind: inspect.StructType) -> Schema:
    words = _SHARED.get(kind.cls, {})
    schema: Schema = {"type": "object"}
    if kind.cls.__doc__:
        schema["description"] = kind.cls.__doc__.split("\n\n")[0]
    schema["properties"] = {
        field.encode_name: {**_schema(field.type), **words.get(field.encode_name, {})} for field in kind.fields
    }
    if required := [field.encode_name for field in kind.fields if field.required]:
        schema["required"] = required
    return {**schema, **words.get("", {})}


_PLAIN: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
}
