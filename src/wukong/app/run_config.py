"""What `wukong run` is told: by flags, by a configuration file, or both. Pure: gets values, gives a RunConfig.

    components: [extender, policy]      fields of RunOptions at the top
    lease: wukong-system/wukong
    gate: {mode: Observe}               one section for the gate
    usage: {prometheus: "http://…"}     and one for each component, those included that come along with others
    extender: {plainHttp: true}

A flag that was given wins over the file. Every problem of both is found at once, and told by the name under which the
user wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from wukong.api.resources import Key
from wukong.app.addresses import find_address_problem
from wukong.app.component import Component, with_needs
from wukong.app.component_choice import LIVE_COMPONENTS, find_unknown_names
from wukong.app.components import COMPONENTS
from wukong.app.options import options_of, read_section, show_value
from wukong.app.permissions import LEASE_NAME
from wukong.errors import InputError
from wukong.runtime.gate import GateSettings
from wukong.runtime.leader import LeaseTimes
from wukong.runtime.mirror_age import LIMIT_SECONDS

RUN, GATE = "", "gate"  # names of sections; what is at the top has none
Flags = Mapping[tuple[str, str], Any]  # section and field → the value of a flag that was given


class RunOptions(msgspec.Struct, frozen=True, rename="camel"):
    components: Annotated[
        tuple[str, ...],
        Meta(description=f"Which to run, by commas: {', '.join(LIVE_COMPONENTS)}.", extra={"metavar": "NAMES"}),
    ] = ()
    kubeconfig: Annotated[
        str, Meta(description="Instead of $KUBECONFIG or ~/.kube/config.", extra={"metavar": "FILE"})
    ] = ""
    context: Annotated[
        str, Meta(description="Instead of the kubeconfig's current context.", extra={"metavar": "NAME"})
    ] = ""
    lease: Annotated[str, Meta(description="Who leads.", extra={"metavar": "NAMESPACE/NAME"})] = "default/wukong"
    lease_seconds: Annotated[int, Meta(description="Before another may lead.", ge=4, le=3600)] = 15
    leader_election: Annotated[bool, Meta(description="Act without asking whether another instance does.")] = True
    probes: Annotated[
        str, Meta(description="Serve /healthz, /readyz and /metrics there.", extra={"metavar": "HOST:PORT"})
    ] = ""
    mirror_age_limit: Annotated[
        float,
        Meta(
            description="Not ready, and no spot node trusted, when a watch has been silent for longer.",
            ge=1,
            le=86_400,
            extra={"metavar": "SECONDS"},
        ),
    ] = LIMIT_SECONDS
    dry_run: Annotated[bool, Meta(description="Say what it would do, and do nothing. Takes no lease.")] = False
    log_format: Annotated[str, Meta(description="", extra={"choices": ("text", "json")})] = "text"

    @property
    def lease_key(self) -> Key | None:
        """The lease to be taken; None: act without asking who else is there."""
        namespace, _, name = self.lease.partition("/")
        return Key(namespace, name) if self.leader_election and not self.dry_run else None

    @property
    def lease_times(self) -> LeaseTimes:
        seconds = self.lease_seconds
        return LeaseTimes(duration=seconds, renew=seconds * 2 / 3, retry=max(0.5, seconds / 7.5))


class RunConfig(msgspec.Struct, frozen=True):
    """Everything that a process of `wukong run` is told. `options` are by the component's name."""

    components: tuple[Component[Any], ...]
    run: RunOptions = RunOptions()
    gate: GateSettings = GateSettings()
    options: Mapping[str, msgspec.Struct] = {}


@cache
def sections() -> Mapping[str, type[msgspec.Struct]]:
    """The sections of a configuration, by name, and what each may hold. Those without a field are left out."""
    live = {component.name for component in with_needs(LIVE_COMPONENTS.values())}
    named = {name: component.options for name, component in COMPONENTS.items() if name in live}
    return {
        RUN: RunOptions,
        **{name: struct for name, struct in named.items() if options_of(struct)},
        GATE: GateSettings,
    }


def read_run_config(flags: Flags, document: object = None, file: str = "") -> RunConfig:
    """`document` is what the `file` holds. Raises InputError with every problem of the file and of the flags."""
    reader = _Reader(flags, document, file)
    config = reader.read()
    if reader.problems:
        raise InputError(*reader.problems)
    return config


class _Reader:
    def __init__(self, flags: Flags, document: object, file: str) -> None:
        self.flags, self.file = flags, file
        self.problems: list[str] = []
        self.document: Mapping[str, Any] = {}
        if isinstance(document, dict):
            self.document = document
        elif document is not None:
            self.problems.append(f"{file}: expected a mapping such as components: [load], got {show_value(document)}.")

    def read(self) -> RunConfig:
        known = sections()
        values = {name: self._read_section(name, struct) for name, struct in known.items()}
        run, gate = values.pop(RUN), values.pop(GATE)
        assert isinstance(run, RunOptions)
        assert isinstance(gate, GateSettings)
        self.problems += self._find_run_problems(run)
        components = [LIVE_COMPONENTS[name] for name in dict.fromkeys(run.components) if name in LIVE_COMPONENTS]
        for component in with_needs(components):
            options = values.get(component.name) or component.options()
            place_of = partial(self.place_of, component.name)
            self.problems += component.find_problems(options, place_of)
        return RunConfig(tuple(components), self._name_lease(run, components, values), gate, values)

    def _name_lease(
        self, run: RunOptions, components: Sequence[Component[Any]], values: Mapping[str, msgspec.Struct]
    ) -> RunOptions:
        """Where nobody says what the Lease is called, it is called as the first component with a wish says."""
        if (RUN, "lease") in self.flags or "lease" in self.document:
            return run
        names = [component.name_lease(values.get(component.name) or component.options()) for component in components]
        wishes = [name for name in names if name != LEASE_NAME]
        return msgspec.structs.replace(run, lease=f"default/{wishes[0]}") if wishes else run

    def _read_section(self, name: str, struct: type[msgspec.Struct]) -> msgspec.Struct:
        document = self.document.get(name) if name else self.document
        others = [section for section in sections() if section] if name == RUN else []
        path = f"{self.file}: ${'.' if name else ''}{name}"
        values, problems = read_section(document, struct, path, others)
        self.problems += problems
        values |= {field: value for (section, field), value in self.flags.items() if section == name}
        return struct(**{field: value for field, value in values.items() if value is not None})

    def place_of(self, section: str, field: str) -> str:
        """What the user calls a field: its flag, unless it stands in the file, or should stand beside others there."""
        option = next(option for option in options_of(sections()[section]) if option.field == field)
        is_in_file = bool(self.document.get(section)) if section else bool(self.file)
        if (section, field) in self.flags or not is_in_file:
            return option.flag
        return f"{self.file}: ${'.' if section else ''}{section}.{option.key}"

    def _find_run_problems(self, run: RunOptions) -> Iterator[str]:
        place_of = partial(self.place_of, RUN)
        if not run.components:
            yield f"{place_of('components')}: expected some of {', '.join(LIVE_COMPONENTS)}, got none."
        yield from find_unknown_names(run.components, place_of("components"), LIVE_COMPONENTS)
        namespace, slash, name = run.lease.partition("/")
        if not (namespace and slash and name):
            yield f"{place_of('lease')}: expected NAMESPACE/NAME, got {run.lease!r}."
        if run.probes and (problem := find_address_problem(run.probes)):
            yield f"{place_of('probes')}: {problem}"
