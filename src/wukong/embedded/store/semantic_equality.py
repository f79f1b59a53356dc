"""Whether two stored documents mean the same, as Kubernetes compares them: 1e-3 of a core is 1m of a core.

By this the API server counts generations and the Deployment controller finds the ReplicaSet of a template; StatefulSets
and DaemonSets compare texts instead. Pure. Documents that are equal as they stand never come this far.
"""

from __future__ import annotations

from typing import Any

from wukong.api.field_types import LIST, MAP, STRUCT, Type
from wukong.api.quantity import parse_quantity


def is_semantically_equal(type_: Type, left: Any, right: Any) -> bool:
    if left is right or left == right:
        return True
    if type_.shape == STRUCT and isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            name in type_.fields and is_semantically_equal(type_.fields[name].type, value, right[name])
            for name, value in left.items()
            if value is not right[name]
        )
    inner = type_.inner
    if inner is None:
        return type_.shape == "quantity" and parse_quantity(left) == parse_quantity(right)
    if type_.shape == MAP and isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            is_semantically_equal(inner, value, right[name]) for name, value in left.items()
        )
    if type_.shape == LIST and isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            is_semantically_equal(inner, *pair) for pair in zip(left, right, strict=True)
        )
    return False
