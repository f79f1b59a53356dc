"""The options that whoever builds virtual machines and whoever judges their pods must agree on: said once for both.

In several processes (the extender's, the controllers') each is to be told the same: `wukong manifests` sees to it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.app.component import Component
from wukong.placement.vm.settings import ResourceAffinityMode, VmSettings


class WukongOptions(msgspec.Struct, frozen=True, rename="camel"):
    resource_affinity: Annotated[
        ResourceAffinityMode,
        Meta(
            description="Who obeys resourceAffinity of Wukongs: node affinity by the labels of component load, the "
            "extender, or our scheduler. The same for every process."
        ),
    ] = VmSettings().resource_affinity

    @property
    def is_judged(self) -> bool:
        """Whether the extender, or our scheduler by the same code, judges it: node affinity then has no part in it."""
        return self.resource_affinity != "labels"


WUKONG_SETTINGS = Component(
    name="wukongs",
    help="what all components that place Wukongs agree on.",
    options=WukongOptions,
    is_named=False,
)
