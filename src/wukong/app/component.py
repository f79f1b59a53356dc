"""What a component is: a value that says what it can be told, what it may do, and what it is made of.

Each lives in a package of its own under app/components. `assemble` builds a list of them for one process, on whatever
ports `live` or `embedded` hand over; `run_config` reads their options. A component decides nothing and opens nothing
until one of its `build_…` functions is called.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from wukong.api.resources import Resource
from wukong.app.permissions import LEASE_NAME, Permission, list_lease_permissions
from wukong.controllers.scheduler.choice import Extension
from wukong.engine import FIRST_BY_NAME, Ties
from wukong.placement.rule import Rules
from wukong.ports import Clock, Cluster, Document, Ledger
from wukong.state import State
from wukong.state.controller import Controller, Watch

if TYPE_CHECKING:
    from wukong.runtime import Loop, Metrics
    from wukong.runtime.ledger_source import WatchedLedger
    from wukong.runtime.source import Source

O = TypeVar("O", bound=msgspec.Struct)  # noqa: E741
PlaceOf = Callable[[str], str]  # field → what the user calls it: --label-step, or FILE: $.load.labelStep
Mutator = Callable[[Resource, Document], Document]  # a new object → as it shall be; it gets a copy
OURS = "ours"  # the process of Wukong's own controllers; the scheduler has one for itself, as in life


class NoOptions(msgspec.Struct, frozen=True):
    """The options of a component that has none."""


class SchedulerExtension(NamedTuple):
    """What a component adds to a scheduler of the same process, and the kinds that it goes by."""

    extension: Extension
    kinds: tuple[Resource, ...]


class Context(NamedTuple):
    """What one process hands to its components. Controllers never get a cluster: they return what should be done."""

    state: State
    metrics: Metrics | None  # None: nobody asks, in an embedded cluster
    clock: Clock
    rules: Rules  # which policies may name
    options: Mapping[str, msgspec.Struct]  # by the component's name
    ties: Ties = FIRST_BY_NAME
    extensions: tuple[SchedulerExtension, ...] = ()
    on_extender_call: Callable[[str], None] = lambda pod: None  # hears of each question; may raise InputError
    ledger: WatchedLedger | None = None  # that a component has opened, beside a real cluster
    node_staleness: Callable[[float], float] = lambda now: 0.0  # the age of mirrored nodes, if beyond its limit

    def options_of(self, component: Component[O]) -> O:
        """The options of this or another component of the process; its defaults if nothing was said."""
        options = self.options.get(component.name)
        return options if isinstance(options, component.options) else component.options()


class OpenLedger(Protocol):
    async def __call__(self, options: Any, stack: AsyncExitStack, *, is_dry_run: bool) -> Ledger | None:
        """The ledger, open until the stack is left. A dry run gets one to read, or None where there is none yet."""
        ...


class Server(Protocol):
    async def start(self, stack: AsyncExitStack, loop: Loop) -> Coroutine[None, None, None]:
        """Listen until the stack is left. Returns what must run beside the loop."""
        ...


def find_no_problems(options: Any, place_of: PlaceOf) -> Iterator[str]:
    return iter(())


def need_no_permissions(options: Any) -> tuple[Permission, ...]:
    return ()


def build_nothing(options: Any, context: Context) -> tuple[Any, ...]:
    return ()


def build_no_sources(options: Any, context: Context, cluster: Cluster) -> tuple[Any, ...]:
    return ()


class Component(msgspec.Struct, Generic[O], frozen=True, kw_only=True):
    """`name` is also the name of its section in a configuration file. `help` is one paragraph for `wukong run --help`.

    `needs` come along with it, once for all who need them. `process` is where it runs in an embedded cluster.
    """

    name: str
    help: str
    options: type[O]
    find_problems: Callable[[O, PlaceOf], Iterable[str]] = find_no_problems
    permissions_of: Callable[[O], tuple[Permission, ...]] = need_no_permissions
    watches: tuple[Watch, ...] = ()  # kinds that no controller watches, but decisions read
    build_controllers: Callable[[O, Context], Iterable[Controller]] = build_nothing
    build_sources: Callable[[O, Context, Cluster], Iterable[Source]] = build_no_sources
    build_servers: Callable[[O, Context], Iterable[Server]] = build_nothing
    open_ledger: OpenLedger | None = None  # beside a real cluster; at most one in a process
    build_extensions: Callable[[O, Context], Iterable[SchedulerExtension]] = build_nothing
    build_mutators: Callable[[O, Context], Iterable[Mutator]] = build_nothing  # of an embedded cluster's new objects
    build_manifests: Callable[[Any, Any], list[Document]] | None = None  # of an installation and its certificates
    needs: tuple[Component[Any], ...] = ()
    keeps_documents: bool = False  # in the mirror of its process: mirror_documents.py
    takes_extensions: bool = False  # it is a scheduler: those of its process are built for it
    process: str = OURS
    is_named: bool = True  # by users; one that is not comes only with those that need it
    workers: int = 8  # on a real cluster: of how many keys actions may be under way at a time
    name_lease: Callable[[O], str] = lambda options: LEASE_NAME  # of its Lease, where nobody says otherwise
    is_embedded_only: bool = False


def with_needs(components: Iterable[Component[Any]]) -> list[Component[Any]]:
    """These components, each followed by those it needs; none of them twice."""
    chosen: dict[str, Component[Any]] = {}
    for component in components:
        chosen.setdefault(component.name, component)
        for needed in with_needs(component.needs):
            chosen.setdefault(needed.name, needed)
    return list(chosen.values())


def list_permissions(
    components: Sequence[Component[Any]],
    options: Mapping[str, msgspec.Struct] | None = None,
    lease_name: str = LEASE_NAME,
) -> list[Permission]:
    """What RBAC must grant a process of these components, those they need last. Who has controllers must lead."""
    needed = [component for component in with_needs(components) if component not in components]
    has_controllers = any(component.build_controllers is not build_nothing for component in components)
    permissions = list(list_lease_permissions(lease_name)) if has_controllers else []
    for component in (*components, *needed):
        permissions += component.permissions_of((options or {}).get(component.name) or component.options())
    return permissions
