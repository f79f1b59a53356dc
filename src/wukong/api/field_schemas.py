"""Words for what a CustomResourceDefinition says of a field, written beside the field in api.placement and api.vm.

Read by api.crds. Nothing of it is checked when a struct is read: what is wrong with an object that got past the API
server is said in its condition Accepted.
"""

from __future__ import annotations

from typing import Any

from msgspec import Meta

RULES = "x-kubernetes-validations"
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def schema(**words: Any) -> Meta:
    """What the CRD says of a field, beyond its type."""
    return Meta(extra_json_schema=words)


def says(text: str, **words: Any) -> Meta:
    """The same, with a description."""
    return Meta(description=text, extra_json_schema=words)


def rule(cel: str, message: str, field_path: str = "") -> dict[str, str]:
    """A CEL rule. `field_path` is where its message points to, below the field it stands at."""
    return {"rule": cel, "message": message, **({"fieldPath": field_path} if field_path else {})}


def chooses(text: str, words: tuple[str, ...], **more: Any) -> Meta:
    """A text that is one of these words."""
    names = ", ".join(f"'{word}'" for word in words)
    rules = [rule(f"self in [{names}]", f"expected {', '.join(words[:-1])} or {words[-1]}")]
    return Meta(description=text, extra_json_schema={"maxLength": 32, RULES: rules, **more})


def lists(text: str, most: int, **words: Any) -> Meta:
    """A list of at most so many entries, replaced as a whole."""
    return says(text, maxItems=most, **{"x-kubernetes-list-type": "atomic", **words})


def lists_by_name(text: str, most: int, **words: Any) -> Meta:
    """A list of at most so many entries with unique names."""
    return lists(text, most, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}, **words)
