"""Brings a document of a built-in kind into the form in which the API server stores it.

Go omits nulls, empty lists, and the zero values of fields that are no pointers; quantities are written in their
canonical form. Unlike Go we keep fields that no struct knows. Called by writes.py on every write of a built-in kind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

import msgspec

from wukong.api.quantity import milli, parse_quantity
from wukong.embedded.store.api_errors import bad_request
from wukong.errors import InputError
from wukong.ports import Document

QUANTITIES = frozenset({
    "limits", "requests", "capacity", "allocatable", "overhead", "allocatedResources", "hard", "used",
    "default", "defaultRequest", "min", "max", "maxLimitRequestRatio",
})  # fmt: skip
QuantityForm = Literal["binary", "decimal", "exponential"]
_TEXT_MAPS = frozenset({
    "labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "stringData", "disruptedPods",
    "volumeAttributes", "parameters",
})  # fmt: skip
_NULL_IS_EMPTY = _TEXT_MAPS - {"disruptedPods"}  # Go reads null as the empty text, or the quantity 0
# Maps by any name: their entries stay even when they are empty. Without entries they are left out themselves.
MAPS = QUANTITIES | _TEXT_MAPS
ZERO_IS_ABSENT = frozenset({  # plain booleans and numbers; those that are pointers keep their zero
    "hostNetwork", "hostPID", "hostIPC", "paused", "unschedulable", "stdin", "stdinOnce", "tty", "readOnly", "hostPort",
    "minReadySeconds", "globalDefault", "generation", "observedGeneration", "updatedReplicas",
    "readyReplicas", "availableReplicas", "unavailableReplicas", "fullyLabeledReplicas", "initialDelaySeconds",
    "sizeBytes",
})  # fmt: skip
OPAQUE = frozenset({"managedFields", "openAPIV3Schema"})  # documents of another kind, whose names mean other things
EMPTY_TEXT_STAYS = frozenset({"storageClassName"})  # of a claim: none at all, not the default one
EMPTY_LIST_STAYS = frozenset({"nodeSelectorTerms"})
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("k", "M", "G", "T", "P", "E")
_FRACTIONAL = ("m", "u", "n")
_NANO = 10**9
_MILLI_NANOS = 10**6
# Values that `normalize` may change, as JSON text has them: always, or in fields of certain names. Found in text that
# means something else, it only costs time.
_MAY_CHANGE = re.compile(rb'":(?:(null|""|\[\])|(\{)|(?:-?0|false))')
_QUANTITY_NAMES = frozenset(name.encode() for name in QUANTITIES)
_MAP_NAMES = frozenset(name.encode() for name in MAPS)
_ZERO_NAMES = frozenset(name.encode() for name in ZERO_IS_ABSENT)
_encode = msgspec.json.Encoder().encode


def is_normal(value: Any) -> bool:
    """Whether `normalize` would surely leave it as it is. Quicker than to normalize it."""
    text = _encode(value)
    for match in _MAY_CHANGE.finditer(text):
        always, opens_map = match.groups()
        start, end = match.span()
        name = text[text.rfind(b'"', 0, start) + 1 : start]
        if always or (not opens_map and name in _ZERO_NAMES):
            return False
        if opens_map and (name in _QUANTITY_NAMES or (name in _MAP_NAMES and text.startswith(b"}", end))):
            return False
    return True


class NormalForms:
    """Tells of many documents whether they are normal. What several of them share, as the same objects, is looked at
    once; nobody may change it meanwhile."""

    def __init__(self) -> None:
        # field and id of a value → the value, so that nothing else gets its id, and whether it is normal
        self._known: dict[tuple[str, int], tuple[Any, bool]] = {}

    def has(self, document: Document) -> bool:
        """What `is_normal` returns."""
        return all(self._is_normal_field(name, value) for name, value in document.items())

    def _is_normal_field(self, name: str, value: Any) -> bool:
        if type(value) is str:
            return bool(value)
        place = (name, id(value))
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = value, is_normal({name: value})
        return known[1]


def normalize(document: Document, known: Any = None) -> Document:
    """Return a normalized copy. Raises Invalid for a quantity that cannot be read.

    `known` is a document that is normalized already: values that both share are not looked at again.
    """
    if not isinstance(known, dict):
        return {
            name: normalized
            for name, value in document.items()
            if (normalized := _normalize_field(name, value, None)) is not None
        }
    result: Document = {}
    for name, value in document.items():
        before = known.get(name)
        normalized = value if value is before else _normalize_field(name, value, before)
        if normalized is not None:
            result[name] = normalized
    return result


def _normalize_field(name: str, value: Any, known: Any) -> Any:
    """Return the value as it is stored, or None where it is omitted."""
    if name in OPAQUE:
        return value
    if isinstance(value, dict):
        if name in MAPS:
            return normalize_map(name, value) or None
        return normalize(value, known)
    if isinstance(value, list):
        shared = {id(item) for item in known} if isinstance(known, list) else ()
        items = [normalize(item) if isinstance(item, dict) and id(item) not in shared else item for item in value]
        return items if items or name in EMPTY_LIST_STAYS else None
    if value == "":
        return value if name in EMPTY_TEXT_STAYS else None
    if name in ZERO_IS_ABSENT and not value:
        return None
    return value


def normalize_map(name: str, entries: Document) -> Document:
    """Return a normalized copy of a map by any name. `name` is the field that holds it, one of MAPS."""
    if name in QUANTITIES:
        return {key: _normalize_quantity(value or "0", f"{name}.{key}") for key, value in entries.items()}
    if name in _NULL_IS_EMPTY:
        return {key: "" if value is None else value for key, value in entries.items()}
    return {key: value for key, value in entries.items() if value is not None}


def _normalize_quantity(value: Any, place: str) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return format_quantity(value)
    except InputError as error:
        raise bad_request(f"{place}: {error}") from None


@lru_cache(4096, typed=True)
def format_quantity(quantity: str | int | float) -> str:
    """Format a quantity in Kubernetes' canonical form: 1000m is 1, 0.5 is 500m, 1024Mi is 1Gi, 1024 stays 1024."""
    return format_nanos(parse_quantity(quantity), form_of(quantity))


def form_of(quantity: str | int | float) -> QuantityForm:
    """The form in which a quantity is written, which sums keep."""
    text = str(quantity).strip()
    if text.endswith("i"):
        return "binary"
    return "exponential" if "e" in text.lower() and not text.endswith("E") else "decimal"


def format_nanos(nanos: int, form: QuantityForm) -> str:
    """Format so many billionths. What is no whole number, or below 1024, has no binary form."""
    if form == "binary" and nanos % _NANO == 0 and abs(nanos) >= 1024 * _NANO:
        number, suffix = _divide_out(nanos // _NANO, 1024, _BINARY)
        return f"{number}{suffix}"
    if form == "exponential":
        return _format_exponential(nanos)
    if nanos % _NANO == 0:
        number, suffix = _divide_out(nanos // _NANO, 1000, _DECIMAL)
        return f"{number}{suffix}"
    power = next(index for index in (1, 2, 3) if nanos % (_NANO // 1000**index) == 0)
    return f"{nanos // (_NANO // 1000**power)}{_FRACTIONAL[power - 1]}"


@lru_cache(4096, typed=True)
def format_stored_quantity(quantity: str | int | float, is_rounded: bool) -> str:
    """Format a quantity as it is stored. Lists of resources are rounded up to thousandths, other quantities are not."""
    nanos = parse_quantity(quantity)
    if is_rounded and nanos % _MILLI_NANOS:
        return format_quantity(f"{milli(nanos)}m")
    return format_quantity(quantity)


def _divide_out(number: int, base: int, suffixes: tuple[str, ...]) -> tuple[int, str]:
    """Divide by the base as often as it goes evenly. Returns what remains and the suffix that stands for the rest."""
    suffix = ""
    for next_suffix in suffixes:
        if number == 0 or number % base:
            break
        number, suffix = number // base, next_suffix
    return number, suffix


def _format_exponential(nanos: int) -> str:
    exponent = -9
    while nanos and nanos % 1000 == 0:
        nanos, exponent = nanos // 1000, exponent + 3
    return f"{nanos}e{exponent}" if nanos and exponent else str(nanos)
