"""The status of our kinds: conditions, and how a policy's pods are divided. Part of the group in placement.py.

Written by the controllers of the component policy; api.crds makes part of the CustomResourceDefinitions of it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from wukong.api.field_schemas import schema
from wukong.api.meta import Base

MOST_REPAIRS = 16  # told of on one policy


class Condition(Base):
    """One thing that is so, or not so."""

    type: Annotated[str, Meta(description="What it is about."), schema(maxLength=316)]
    status: Annotated[str, Meta(description="Whether it is so."), schema(enum=["True", "False", "Unknown"])]
    reason: Annotated[str, Meta(description="Why, in one word."), schema(maxLength=1024)] = ""
    message: Annotated[str, Meta(description="Why, for people."), schema(maxLength=32768)] = ""
    last_transition_time: Annotated[str, Meta(description="Since when."), schema(format="date-time")] = ""
    observed_generation: Annotated[int, Meta(description="Of the spec this is about."), schema(format="int64")] = 0


class SplitRepair(Base):
    """An owner whose pods are being divided anew, one eviction at a time, or that was given up."""

    owner: Annotated[str, Meta(description="Such as ReplicaSet shop/web-7d9f."), schema(maxLength=600)]
    version: Annotated[
        str,
        Meta(description="Of its pods, their number and the policy: for another one it is tried anew."),
        schema(maxLength=600),
    ] = ""
    pod: Annotated[str, Meta(description="The uid of the pod that was evicted last."), schema(maxLength=64)] = ""
    misplaced: Annotated[
        int, Meta(description="Pods that were wrong when it was evicted."), schema(format="int32", minimum=0)
    ] = 0
    evictions: Annotated[
        int, Meta(description="In a row that left as many wrong."), schema(format="int32", minimum=0)
    ] = 0
    held: Annotated[bool, Meta(description="Given up: evictions do not help.")] = False


class SplitStatus(Base):
    """How the pods of a policy with onDemandBase or spotPercent are divided."""

    owners: Annotated[int, Meta(description="How many have pods."), schema(format="int32", minimum=0)] = 0
    on_demand: Annotated[int, Meta(description="Pods on on-demand nodes."), schema(format="int32", minimum=0)] = 0
    spot: Annotated[int, Meta(description="Pods on spot nodes."), schema(format="int32", minimum=0)] = 0
    misplaced: Annotated[
        int, Meta(description="Pods that are on the wrong side."), schema(format="int32", minimum=0)
    ] = 0
    repairs: Annotated[
        list[SplitRepair],
        Meta(description="Owners at which something is being done, or was."),
        schema(maxItems=MOST_REPAIRS, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class PlacementPolicyStatus(Base):
    """How the policy stands."""

    observed_generation: Annotated[int, Meta(description="Of the spec this is about."), schema(format="int64")] = 0
    conditions: Annotated[
        list[Condition],
        Meta(description="Accepted, BudgetConflict and SplitHeld, by type."),
        schema(maxItems=16, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = []
    split: SplitStatus | None = None
