"""How a document of Kubernetes' own kinds looks after the API server has read and written it.

Go leaves out nulls, empty lists, and the zero values of fields that are no pointers; quantities are written in their
shortest form. Unlike Go we keep fields that no struct knows. Called by server.py on every write of a built-in kind.
"""

from __future__ import annotations

from typing import Any

from wukong.api.quantity import parse_quantity
from wukong.embedded.store.api_errors import bad_request
from wukong.errors import InputError
from wukong.ports import Document

QUANTITIES = frozenset({"limits", "requests", "capacity", "allocatable", "overhead", "allocatedResources", "hard"})
_TEXTS = frozenset({
    "labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "stringData", "disruptedPods",
    "volumeAttributes", "parameters",
})  # fmt: skip
_NULL_IS_EMPTY = _TEXTS - {"disruptedPods"}  # Go reads null as the empty text, or the quantity 0
# Maps by any name: their entries stay even when they are empty. Without entries they are left out themselves.
MAPS = QUANTITIES | _TEXTS
_ZERO_IS_ABSENT = frozenset({  # plain booleans and numbers; those that are pointers keep their zero
    "hostNetwork", "hostPID", "hostIPC", "paused", "unschedulable", "stdin", "stdinOnce", "tty", "readOnly", "hostPort",
    "minReadySeconds", "globalDefault", "generation", "observedGeneration", "updatedReplicas",
    "readyReplicas", "availableReplicas", "unavailableReplicas", "fullyLabeledReplicas", "initialDelaySeconds",
    "sizeBytes",
})  # fmt: skip
_OPAQUE = frozenset({"fieldsV1", "openAPIV3Schema"})  # documents of another kind, whose names mean other things
_EMPTY_LIST_STAYS = frozenset({"nodeSelectorTerms"})
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("k", "M", "G", "T", "P", "E")
_SMALL = ("m", "u", "n")
_NANO = 10**9


def normal(document: Document, known: Any = None) -> Document:
    """A new document; what is given stays as it is. Raises Invalid for a quantity that is none.

    `known` is a document that is normal already: what both share is taken as it is.
    """
    if not isinstance(known, dict):
        return {name: made for name, value in document.items() if (made := _field(name, value, None)) is not None}
    found: Document = {}
    for name, value in document.items():
        before = known.get(name)
        made = value if value is before else _field(name, value, before)
        if made is not None:
            found[name] = made
    return found


def _field(name: str, value: Any, known: Any) -> Any:
    """The value as it is written, or None where it is left out."""
    if name in _OPAQUE:
        return value
    if isinstance(value, dict):
        if name in MAPS:
            return _map(name, value) or None
        return normal(value, known)
    if isinstance(value, list):
        shared = {id(item) for item in known} if isinstance(known, list) else ()
        made = [normal(it) if isinstance(it, dict) and id(it) not in shared else it for it in value]
        return made if made or name in _EMPTY_LIST_STAYS else None
    if value == "":
        return None
    if name in _ZERO_IS_ABSENT and not value:
        return None
    return value


def _map(name: str, entries: Document) -> Document:
    if name in QUANTITIES:
        return {key: _quantity(value or "0", f"{name}.{key}") for key, value in entries.items()}
    if name in _NULL_IS_EMPTY:
        return {key: "" if value is None else value for key, value in entries.items()}
    return {key: value for key, value in entries.items() if value is not None}


def _quantity(value: Any, place: str) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return canonical(value)
    except InputError as error:
        raise bad_request(f"{place}: {error}") from None


def canonical(quantity: str | int | float) -> str:
    """Kubernetes' shortest form: 1000m is 1, 0.5 is 500m, 1024Mi is 1Gi, 1024 stays 1024."""
    nanos = parse_quantity(quantity)
    text = str(quantity).strip()
    if text.endswith("i") and (nanos % _NANO == 0) and abs(nanos) >= 1024 * _NANO:
        number, suffix = _divided(nanos // _NANO, 1024, _BINARY)
        return f"{number}{suffix}"
    if "e" in text.lower() and not text.endswith("E"):
        return _exponential(nanos)
    if nanos % _NANO == 0:
        number, suffix = _divided(nanos // _NANO, 1000, _DECIMAL)
        return f"{number}{suffix}"
    small = next(index for index in (1, 2, 3) if nanos % (_NANO // 1000**index) == 0)
    return f"{nanos // (_NANO // 1000**small)}{_SMALL[small - 1]}"


def _divided(number: int, by: int, suffixes: tuple[str, ...]) -> tuple[int, str]:
    suffix = ""
    for each in suffixes:
        if number == 0 or number % by:
            break
        number, suffix = number // by, each
    return number, suffix


def _exponential(nanos: int) -> str:
    exponent = -9
    while nanos and nanos % 1000 == 0:
        nanos, exponent = nanos // 1000, exponent + 3
    return f"{nanos}e{exponent}" if nanos and exponent else str(nanos)
