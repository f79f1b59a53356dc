"""The kind NodeNotice of the group placement.novasphere.dev: one notice that a node got, and what became of it.

Written by controllers/spot/history.py, shown by `wukong spot history`; api.crds makes the CustomResourceDefinition of
these structs. It outlives its Node, which is what the record on the Node does not. Nothing is decided by it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from wukong.api.field_schemas import schema
from wukong.api.meta import Base, Object

MOST_PODS = 1000  # of one notice that are listed
MOST_WORKLOADS = 1000

_Count = Annotated[int, schema(format="int32", minimum=0)]
_Time = Annotated[str, schema(maxLength=32)]


class NoticedPod(Base):
    """A pod that had to leave the node."""

    namespace: Annotated[str, Meta(description="Its namespace."), schema(maxLength=63)] = ""
    name: Annotated[str, Meta(description="Its name."), schema(maxLength=253)] = ""
    uid: Annotated[str, Meta(description="Its uid."), schema(maxLength=64)] = ""
    workload: Annotated[
        str,
        Meta(description="Who makes it again, such as Deployment/web; absent where nobody does."),
        schema(maxLength=320),
    ] = ""
    way: Annotated[
        str,
        Meta(description="replaced, evicted, deleted, left, lost or stayed; absent as long as it is there."),
        schema(maxLength=16),
    ] = ""
    at: Annotated[_Time, Meta(description="When that was seen.")] = ""


class Shortage(Base):
    """How long a workload had fewer ready pods than it should have, because of this notice."""

    namespace: Annotated[str, Meta(description="Of the workload."), schema(maxLength=63)] = ""
    workload: Annotated[str, Meta(description="Such as Deployment/web."), schema(maxLength=320)] = ""
    seconds: Annotated[int, Meta(description="Missing pods by seconds."), schema(format="int64", minimum=0)] = 0


class NodeNoticeSpec(Base):
    node: Annotated[str, Meta(description="The name of the Node."), schema(maxLength=253)] = ""
    uid: Annotated[str, Meta(description="Its uid: names come again."), schema(maxLength=64)] = ""
    source: Annotated[str, Meta(description="Who said so."), schema(maxLength=1000)] = ""
    course: Annotated[str, Meta(description="Reclaim, Drain, Recommend or Lost."), schema(maxLength=16)] = ""
    seen: Annotated[_Time, Meta(description="When it was seen.")] = ""
    deadline: Annotated[_Time, Meta(description="When the machine was to go; absent where nobody said.")] = ""


class NodeNoticeStatus(Base):
    phase: Annotated[
        str,
        Meta(description="Leaving; Recovering, while workloads are short of pods afterwards; Finished."),
        schema(maxLength=16),
    ] = ""
    outcome: Annotated[
        str,
        Meta(description="Gone, Withdrawn, or Superseded by another notice of the node; absent before."),
        schema(maxLength=16),
    ] = ""
    ended: Annotated[_Time, Meta(description="When the Node was gone, or the notice was.")] = ""
    emptied: Annotated[_Time, Meta(description="When the last pod that had to leave had left.")] = ""
    total: Annotated[_Count, Meta(description="Pods that had to leave.")] = 0
    lost: Annotated[_Count, Meta(description="Pods that went with the machine.")] = 0
    short_seconds: Annotated[
        int, Meta(description="Missing pods by seconds, of all workloads."), schema(format="int64", minimum=0)
    ] = 0
    pods: Annotated[
        list[NoticedPod],
        Meta(description="Those that had to leave."),
        schema(maxItems=MOST_PODS, **{"x-kubernetes-list-type": "atomic"}),
    ] = []
    shortages: Annotated[
        list[Shortage],
        Meta(description="Workloads that were short of pods."),
        schema(maxItems=MOST_WORKLOADS, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class NodeNotice(Object):
    """A notice that a node got, and what became of the node and its pods. Nothing is decided by it."""

    spec: Annotated[NodeNoticeSpec, Meta(description="What was said.")] = field(default_factory=NodeNoticeSpec)
    status: Annotated[NodeNoticeStatus, Meta(description="What became of it.")] = field(
        default_factory=NodeNoticeStatus
    )
