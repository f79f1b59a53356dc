"""The fields of an options struct as people meet them: as flags, and as entries of a configuration file.

A field's type has its bounds, `msgspec.Meta(description=…)` its help; `extra` may hold what differs from the usual:

    flag            the flag's name, where it is not the field's; --no-… for a field that is true by default
    metavar         what stands for the value in the help
    choices         the texts that are allowed, where a struct cannot name them one by one
    shows_default   False where the help tells of the default in its own words

Read by the command line (flags), by run_config (files). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import inspect

from wukong.cluster.redaction import redact_urls
from wukong.errors import nearest

Kind = Literal["text", "integer", "number", "switch", "choice", "list"]
_ARTICLES = {"text": "text", "integer": "an integer", "number": "a number", "switch": "true or false"}


class Option(NamedTuple):
    """One field of an options struct."""

    field: str
    key: str  # in a file: camelCase
    flag: str  # on the command line
    kind: Kind
    type: Any  # what values are checked against
    default: Any
    help: str
    metavar: str | None = None
    low: Any = None  # a number of its own kind, or None
    high: Any = None
    choices: tuple[str, ...] = ()
    shows_default: bool = True

    @property
    def expectation(self) -> str:
        """`an integer from 1 to 50`"""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "list":
            return "a list of texts"
        bounds = [f"{word} {bound}" for word, bound in (("from", self.low), ("to", self.high)) if bound is not None]
        return " ".join([_ARTICLES[self.kind], *bounds])


def options_of(struct: type[msgspec.Struct]) -> tuple[Option, ...]:
    """The options that a struct has, in its order."""
    return _read_options(struct)


@cache
def _read_options(struct: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Once for each struct: to take a type apart takes milliseconds."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType), struct
    types = {field.name: field.type for field in msgspec.structs.fields(struct)}
    return tuple(_option(field, types[field.name]) for field in described.fields)


def read_value(option: Option, value: object, place: str) -> tuple[Any, list[str]]:
    """A value from a file as the struct has it, or what is wrong with it. `place` is where it stands."""
    try:
        converted = msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        converted = None
    is_finite = not isinstance(converted, float) or math.isfinite(converted)  # YAML can write .nan and .inf
    if converted is None or not is_finite or (option.choices and converted not in option.choices):
        hint = nearest(str(value), option.choices)
        return None, [f"{place}: expected {option.expectation}, got {show_value(value)}.{hint}"]
    return converted, []


def read_section(
    document: object, struct: type[msgspec.Struct], path: str, more: Iterable[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The values of one section by field, and every problem. `more` are names that are known there besides."""
    if document is None:  # a section of which nothing is said
        return {}, []
    if not isinstance(document, dict):
        return {}, [f"{path}: expected a mapping of fields, got {show_value(document)}."]
    options = {option.key: option for option in options_of(struct)}
    values, others = dict[str, Any](), tuple(more)
    problems: list[str] = []
    for key, value in document.items():
        if key in options:
            values[options[key].field], wrong = read_value(options[key], value, f"{path}.{key}")
            problems += wrong
        elif key not in others:
            hint = nearest(str(key), [*options, *others]) or f" Known here: {', '.join([*options, *others]) or 'none'}."
            problems.append(f"{path}.{key}: unknown field.{hint}")
    return values, problems


def show_value(value: object) -> str:
    """What stands in a file, short and without passwords: hidden before it is cut, or an @ might be cut off."""
    return redact_urls(f"{value!r:.2000}")[:100]


def _option(field: inspect.Field, type_: Any) -> Option:
    described, text, extra = field.type, "", dict[str, Any]()
    if isinstance(described, inspect.Metadata):
        text = (described.extra_json_schema or {}).get("description", "")
        extra = dict(described.extra or {})
        described = described.type
    choices = described.values if isinstance(described, inspect.LiteralType) else extra.get("choices", ())
    kind = "choice" if choices else _kind_of(described)
    is_on = kind == "switch" and field.default is True
    return Option(
        field=field.name,
        key=field.encode_name,
        flag=extra.get("flag") or f"--{'no-' if is_on else ''}{field.name.replace('_', '-')}",
        kind=kind,
        type=type_,
        default=field.default,
        help=text,
        metavar=extra.get("metavar"),
        low=getattr(described, "ge", None),
        high=getattr(described, "le", None),
        choices=tuple(map(str, choices)),
        shows_default=extra.get("shows_default", True),
    )


def _kind_of(described: inspect.Type) -> Kind:
    match described:
        case inspect.BoolType():
            return "switch"
        case inspect.IntType():
            return "integer"
        case inspect.FloatType():
            return "number"
        case inspect.VarTupleType():
            return "list"
        case inspect.StrType():
            return "text"
    raise TypeError(f"no option can be made of {described}")
