"""Flags made of options structs: what a struct says of its fields is what `--help` shows and what click accepts.

Used by the verbs whose options are a component's. Which flags were really given is read from click's context: only
those win over a configuration file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from wukong.app.component_choice import split_names
from wukong.app.options import Option, options_of

F = TypeVar("F", bound=Callable[..., Any])
Sections = Mapping[str, type[msgspec.Struct]]


def add_flags(sections: Sections) -> Callable[[F], F]:
    """Decorates a command with a flag for each field of these structs, in their order."""

    def decorate(command: F) -> F:
        for struct in reversed(list(sections.values())):
            for option in reversed(options_of(struct)):
                command = build_flag(option)(command)
        return command

    return decorate


def build_flag(option: Option, **settings: Any) -> Callable[[F], F]:
    """One flag; `settings` of click replace what the option says."""
    default = ",".join(option.default) if option.kind == "list" else option.default
    shows_default = option.shows_default and option.kind != "switch" and default != ""
    attributes = {
        "default": False if option.kind == "switch" else default,
        "show_default": shows_default,
        "help": option.help or None,
        "metavar": option.metavar,
        "type": _click_type(option),
        "is_flag": option.kind == "switch",
    }
    return click.option(option.flag, name_of(option), **{**attributes, **settings})


def read_flags(context: click.Context, sections: Sections) -> dict[tuple[str, str], Any]:
    """Section and field → the value of each flag that is on the command line."""
    return {
        (section, option.field): value_of(option, context.params[name_of(option)])
        for section, struct in sections.items()
        for option in options_of(struct)
        if context.get_parameter_source(name_of(option)) == ParameterSource.COMMANDLINE
    }


def name_of(option: Option) -> str:
    """The name of a flag's parameter."""
    return option.flag.removeprefix("--").replace("-", "_")


def value_of(option: Option, value: Any) -> Any:
    """A parameter's value as the struct has it."""
    match option.kind:
        case "list":
            return split_names(value)
        case "switch":
            return not option.default
        case "number":
            return float(value)
    return value


def _click_type(option: Option) -> Any:
    match option.kind:
        case "choice":
            return click.Choice(option.choices)
        case "integer" if option.low is not None or option.high is not None:
            return click.IntRange(option.low, option.high)
        case "integer":
            return int
        case "number":
            return _Number(option.low, option.high)
        case "switch":
            return bool
    return str


class _Number(click.FloatRange):
    """A number within bounds. nan is neither below nor above any, and click would let it pass."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid number.", parameter, context)
        return number
