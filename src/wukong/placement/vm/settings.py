"""What the operator chooses for all Wukongs: the options of component `vm` end up here. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from wukong.placement.free_labels import FREE_PREFIX

ResourceAffinityMode = Literal["labels", "extender", "scheduler"]


class VmSettings(msgspec.Struct, frozen=True):
    """Who obeys `scheduling.resourceAffinity`: node labels by node affinity, the extender, or our own scheduler.

    Only one of them does, so that nothing counts twice: in the modes extender and scheduler no terms are built.
    """

    resource_affinity: ResourceAffinityMode = "labels"
    usage_prefix: str = "usage.novasphere.dev"
    free_prefix: str = FREE_PREFIX
