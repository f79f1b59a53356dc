"""What our CustomResourceDefinitions say of structs that are Kubernetes' own: bounds, rules and words for their fields.

Read by api.crds. The API server refuses CEL rules whose cost nothing bounds, so every list and text has a limit. The
rules are those that Kubernetes has for pods: what a pod could not have is refused before it is stored.
"""

from __future__ import annotations

from typing import Any

from wukong.api.core import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.api.meta import LabelSelector, LabelSelectorRequirement

Schema = dict[str, Any]
_RULES = "x-kubernetes-validations"
# Keeps control characters out of what people read on their terminals.
PRINTABLE = "^[ -~]*$"  # whether a label is right, the controllers tell in the status
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
ATOMIC: Schema = {"x-kubernetes-list-type": "atomic"}
LABEL_VALUE: Schema = {"maxLength": 63, "pattern": PRINTABLE}
LABEL_KEY: Schema = {"maxLength": 317, "pattern": PRINTABLE}
_NAMESPACE: Schema = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}


def _rule(rule: str, message: str, field_path: str = "") -> Schema:
    return {"rule": rule, "message": message, **({"fieldPath": field_path} if field_path else {})}


_WEIGHT: Schema = {
    "format": "int32",
    "description": "How much it counts beside the others, 1 to 100.",
    _RULES: [_rule("self >= 1 && self <= 100", "expected a weight from 1 to 100")],
}
TOPOLOGY_KEY: Schema = {
    **LABEL_KEY,
    "description": "The node label whose values are the domains: kubernetes.io/hostname, topology.kubernetes.io/zone",
    _RULES: [_rule("self != ''", "expected a node label key, such as topology.kubernetes.io/zone")],
}
_KEYS: Schema = {"maxItems": 16, "items": {"type": "string", **LABEL_KEY}, **ATOMIC}
_OPERATOR_AND_VALUES = _rule(
    "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
    ": !has(self.values) || size(self.values) == 0",
    "expected values with the operators In and NotIn, and none with Exists and DoesNotExist",
    ".values",
)
_NODE_OPERATOR_AND_VALUES = (
    _rule(
        "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
        ": self.operator in ['Gt', 'Lt'] || !has(self.values) || size(self.values) == 0",
        "expected values with the operators In and NotIn, and none with Exists and DoesNotExist",
        ".values",
    ),
    _rule(
        "!(self.operator in ['Gt', 'Lt']) "
        "|| has(self.values) && size(self.values) == 1 && self.values[0].matches(r'^[0-9]{1,18}$')",
        'expected exactly one whole number in quotes, such as "5", with the operators Gt and Lt',
        ".values",
    ),
)


def _is_selected(key: str) -> str:
    """CEL: whether the labelSelector mentions a key."""
    return (
        f"(has(self.labelSelector.matchLabels) && {key} in self.labelSelector.matchLabels || "
        f"has(self.labelSelector.matchExpressions) && self.labelSelector.matchExpressions.exists(e, e.key == {key}))"
    )


def _label_keys_rules(*fields: str) -> list[Schema]:
    needs_selector = [
        _rule(
            f"!has(self.{field}) || size(self.{field}) == 0 || has(self.labelSelector)",
            f"expected a labelSelector, for {field} adds to one",
            ".labelSelector",
        )
        for field in fields
    ]
    not_twice = _rule(
        f"!has(self.matchLabelKeys) || !has(self.labelSelector) || self.matchLabelKeys.all(k, !{_is_selected('k')})",
        "expected keys that labelSelector does not mention: the pod would be refused. Remove them from one of the two",
        ".matchLabelKeys",
    )
    return [*needs_selector, not_twice]


_MATCH_OR_MISMATCH = _rule(
    "!has(self.matchLabelKeys) || !has(self.mismatchLabelKeys) "
    "|| self.matchLabelKeys.all(k, !(k in self.mismatchLabelKeys))",
    "expected keys that mismatchLabelKeys does not name",
    ".matchLabelKeys",
)
# Additions to the schema of a struct itself (""), and of its fields.
SHARED_STRUCTS: dict[type, dict[str, Schema]] = {
    LabelSelector: {
        "": {"description": "Labels, as everywhere in Kubernetes.", "x-kubernetes-map-type": "atomic"},
        "matchLabels": {
            "description": "Labels that must be there with exactly these values.",
            "maxProperties": 32,
            "additionalProperties": {"type": "string", **LABEL_VALUE},
        },
        "matchExpressions": {"description": "All of them must hold.", "maxItems": 32, **ATOMIC},
    },
    LabelSelectorRequirement: {
        "": {"description": "A condition on one label.", _RULES: [_OPERATOR_AND_VALUES]},
        "key": {"description": "The label's key.", **LABEL_KEY},
        "operator": {"description": "How the label is compared with the values.", "maxLength": 16},
        "values": {
            "description": "For In and NotIn.",
            "maxItems": 64,
            "items": {"type": "string", **LABEL_VALUE},
            **ATOMIC,
        },
    },
    PodAffinityTerm: {
        "": {
            "description": "Pods by their labels and namespaces, and the domain they are to share, or not to share.",
            _RULES: [*_label_keys_rules("matchLabelKeys", "mismatchLabelKeys"), _MATCH_OR_MISMATCH],
        },
        "topologyKey": TOPOLOGY_KEY,
        "labelSelector": {"description": "Which pods. Absent: none; empty: all."},
        "namespaces": {
            "description": "Namespaces of those pods, besides those that namespaceSelector selects; where both are "
            "absent, the pod's own.",
            "maxItems": 64,
            "items": _NAMESPACE,
            **ATOMIC,
        },
        "namespaceSelector": {
            "description": "Namespaces of those pods by their labels, besides those in namespaces. Empty: all."
        },
        "matchLabelKeys": {
            "description": "Labels whose values are taken from the pod itself and added to labelSelector.",
            **_KEYS,
        },
        "mismatchLabelKeys": {
            "description": "Labels whose values must differ from those of the pod itself.",
            **_KEYS,
        },
    },
    WeightedPodAffinityTerm: {
        "": {"description": "A term that is wished for."},
        "weight": _WEIGHT,
        "podAffinityTerm": {"description": "What is wished for."},
    },
    NodeSelectorRequirement: {
        "": {"description": "A condition on one label of nodes.", _RULES: list(_NODE_OPERATOR_AND_VALUES)},
        "key": {"description": "The label's key.", **LABEL_KEY},
        "operator": {"description": "How the label is compared; Gt and Lt compare whole numbers.", "maxLength": 16},
        "values": {
            "description": "For In and NotIn; for Gt and Lt exactly one whole number.",
            "maxItems": 64,
            "items": {"type": "string", **LABEL_VALUE},
            **ATOMIC,
        },
    },
    NodeSelectorTerm: {
        "": {
            "description": "Conditions on nodes, all of which must hold.",
            "x-kubernetes-map-type": "atomic",
            _RULES: [
                _rule(
                    "has(self.matchExpressions) && size(self.matchExpressions) > 0 "
                    "|| has(self.matchFields) && size(self.matchFields) > 0",
                    "expected at least one of matchExpressions or matchFields: a term without any matches no node",
                ),
                _rule(
                    "!has(self.matchFields) || self.matchFields.all(f, f.key == 'metadata.name' && "
                    "f.operator in ['In', 'NotIn'] && has(f.values) && size(f.values) == 1)",
                    "expected metadata.name with In or NotIn and exactly one node name",
                    ".matchFields",
                ),
            ],
        },
        "matchExpressions": {"description": "By labels of nodes.", "maxItems": 32, **ATOMIC},
        "matchFields": {"description": "By fields of nodes: metadata.name alone.", "maxItems": 8, **ATOMIC},
    },
    PreferredSchedulingTerm: {
        "": {"description": "Nodes that are wished for."},
        "weight": _WEIGHT,
        "preference": {"description": "Which nodes."},
    },
    Toleration: {
        "": {
            "description": "A taint that is tolerated.",
            _RULES: [
                _rule(
                    "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
                    "expected no value with the operator Exists",
                    ".value",
                ),
                _rule(
                    "has(self.key) && self.key != '' || has(self.operator) && self.operator == 'Exists'",
                    "expected Exists where there is no key: that tolerates every taint",
                    ".operator",
                ),
                _rule(
                    "!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",
                    "expected the effect NoExecute, for tolerationSeconds is set",
                    ".effect",
                ),
            ],
        },
        "key": {"description": "The taint's key; none with Exists: every taint.", **LABEL_KEY},
        "operator": {
            "description": "Equal (if absent) or Exists.",
            "maxLength": 16,
            _RULES: [_rule("self in ['', 'Equal', 'Exists']", "expected Equal or Exists")],
        },
        "value": {"description": "The taint's value, with Equal.", **LABEL_VALUE},
        "effect": {
            "description": "NoSchedule, PreferNoSchedule or NoExecute; all of them if absent.",
            "maxLength": 16,
            _RULES: [
                _rule(
                    "self in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']",
                    "expected NoSchedule, PreferNoSchedule or NoExecute",
                )
            ],
        },
        "tolerationSeconds": {
            "description": "How long a taint of effect NoExecute is tolerated; for ever if absent.",
            "format": "int64",
        },
    },
    TopologySpreadConstraint: {
        "": {
            "description": "How evenly pods are spread over domains.",
            _RULES: [
                *_label_keys_rules("matchLabelKeys"),
                _rule(
                    "!has(self.minDomains) || !has(self.whenUnsatisfiable) "
                    "|| self.whenUnsatisfiable == 'DoNotSchedule'",
                    "expected DoNotSchedule, for minDomains is set",
                    ".whenUnsatisfiable",
                ),
            ],
        },
        "maxSkew": {
            "description": "How many more pods one domain may have than another, 1 or more.",
            "format": "int32",
            _RULES: [_rule("self >= 1", "expected 1 or more")],
        },
        "topologyKey": TOPOLOGY_KEY,
        "whenUnsatisfiable": {"description": "DoNotSchedule (if absent), or ScheduleAnyway.", "maxLength": 16},
        "labelSelector": {"description": "Which pods are counted."},
        "minDomains": {
            "description": "While there are fewer domains than this, the emptiest counts as having none; 1 or more.",
            "format": "int32",
            _RULES: [_rule("self >= 1", "expected 1 or more")],
        },
        "nodeAffinityPolicy": {
            "description": "Whether only nodes that the pod may go to are counted: Honor (if absent) or Ignore.",
            "maxLength": 16,
        },
        "nodeTaintsPolicy": {
            "description": "Whether only nodes whose taints are tolerated are counted: Honor, or Ignore (if absent).",
            "maxLength": 16,
        },
        "matchLabelKeys": {
            "description": "Labels whose values are taken from the pod itself and added to labelSelector.",
            **_KEYS,
        },
    },
}
