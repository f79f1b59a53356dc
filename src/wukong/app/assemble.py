"""Components put together for one process: what they watch, decide, bring in and serve. On any ports.

Called by `live` once, with a real cluster's loop around it, and by `embedded` for every process of a world and again
whenever one starts again. It knows no component by name, opens nothing and starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from wukong.actions import Action
from wukong.app.component import Component, Context, Mutator, Server, with_needs
from wukong.cluster.ledger.dry_run import DryRunLedger
from wukong.ports import Cluster
from wukong.runtime.source import Source
from wukong.state.controller import Controller, Watch

Say = Callable[[Action], None]


class Assembly(NamedTuple):
    components: tuple[Component[Any], ...]  # those that were asked for, and those they need
    controllers: tuple[Controller, ...]
    watches: tuple[Watch, ...]
    context: Context

    @property
    def keeps_documents(self) -> bool:
        """Whether the mirror of this process is to hold whole documents."""
        return any(component.keeps_documents for component in self.components)

    async def open_ledger(self, stack: AsyncExitStack, say: Say | None = None) -> Assembly:
        """The same, with the ledger of the component that keeps one, closed with the stack.

        With `say` it is a dry run: what would be recorded is said.
        """
        from wukong.runtime.ledger_source import WatchedLedger  # brings asyncio

        for component in self.components:
            if component.open_ledger is None:
                continue
            options, is_dry_run = self.context.options_of(component), say is not None
            ledger = await component.open_ledger(options, stack, is_dry_run=is_dry_run)
            if say is not None:
                ledger = DryRunLedger(ledger, say)
            assert ledger is not None, "only a dry run may do without"
            return self._replace(context=self.context._replace(ledger=WatchedLedger(ledger)))
        return self

    def build_sources(self, cluster: Cluster) -> list[Source]:
        """What runs beside the loop of a real cluster. In an embedded one, what is outside is written as objects."""
        return [
            source
            for component in self.components
            for source in component.build_sources(self.context.options_of(component), self.context, cluster)
        ]

    def build_mutators(self) -> list[Mutator]:
        """What an embedded cluster's API server asks about new objects. A real one asks servers."""
        return [
            mutator
            for component in self.components
            for mutator in component.build_mutators(self.context.options_of(component), self.context)
        ]

    def build_servers(self) -> list[Server]:
        """What listens beside the loop of a real cluster. In an embedded one, who asks is in the same process."""
        return [
            server
            for component in self.components
            for server in component.build_servers(self.context.options_of(component), self.context)
        ]


def assemble(components: Sequence[Component[Any]], context: Context) -> Assembly:
    """Everything that these components, and those they need, are made of in this context."""
    chosen = with_needs(components)
    if any(component.takes_extensions for component in chosen):
        extensions = [
            extension
            for component in chosen
            for extension in component.build_extensions(context.options_of(component), context)
        ]
        context = context._replace(extensions=tuple(extensions))
    controllers = [
        controller
        for component in chosen
        for controller in component.build_controllers(context.options_of(component), context)
    ]
    watches = [watch for component in chosen for watch in component.watches]
    return Assembly(tuple(chosen), tuple(controllers), tuple(watches), context)
