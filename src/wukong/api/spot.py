"""The kind Move of the group placement.novasphere.dev: one surge of a workload whose pods leave their nodes.

Written and read by controllers/spot; api.crds makes the CustomResourceDefinition of these structs. A Move is written
before its workload is scaled, and removed when the workload has its own size again: whoever comes after a crash goes on
from there. People only look at it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from wukong.api.field_schemas import schema
from wukong.api.meta import Base, Object

MOST_PODS = 1000  # of one Move; further ones leave after those
MOST_SIZES = 32

_Replicas = Annotated[int, schema(format="int32", minimum=0)]


class MoveOwner(Base):
    """The workload that is scaled."""

    kind: Annotated[
        str, Meta(description="Deployment or ReplicaSet."), schema(maxLength=10, enum=["Deployment", "ReplicaSet"])
    ] = ""
    name: Annotated[str, Meta(description="Its name."), schema(maxLength=253)] = ""
    uid: Annotated[str, Meta(description="Its uid: names come again."), schema(maxLength=64)] = ""


class MoveAutoscaler(Base):
    """The HorizontalPodAutoscaler whose least size is raised as long as its workload is surged."""

    name: Annotated[str, Meta(description="Its name."), schema(maxLength=253)] = ""
    min_replicas: Annotated[int | None, Meta(description="Its minReplicas before; absent where it had none.")] = None


class MovedPod(Base):
    """A pod that is to go once another one has taken its place."""

    name: Annotated[str, Meta(description="Its name."), schema(maxLength=253)] = ""
    uid: Annotated[str, Meta(description="Its uid."), schema(maxLength=64)] = ""
    node: Annotated[str, Meta(description="The node that it leaves."), schema(maxLength=253)] = ""


class MoveSpec(Base):
    owner: Annotated[MoveOwner, Meta(description="The workload that is scaled.")] = field(default_factory=MoveOwner)
    original: Annotated[_Replicas, Meta(description="Its size before, and after.")] = 0
    surged: Annotated[_Replicas, Meta(description="Its size while replacements start beside the pods that leave.")] = 0
    generation: Annotated[
        int, Meta(description="Of the workload when this was decided."), schema(format="int64", minimum=0)
    ] = 0
    former: Annotated[
        list[_Replicas],
        Meta(description="Sizes that this Move gave it before more pods had to leave."),
        schema(maxItems=MOST_SIZES, **{"x-kubernetes-list-type": "atomic"}),
    ] = []
    pods: Annotated[
        list[MovedPod],
        Meta(description="Those that leave."),
        schema(maxItems=MOST_PODS, **{"x-kubernetes-list-type": "atomic"}),
    ] = []
    autoscaler: Annotated[
        MoveAutoscaler | None, Meta(description="The HorizontalPodAutoscaler that scales the workload.")
    ] = None
    expires: Annotated[
        str,
        Meta(description="When the workload gets its size back, whatever became of it."),
        schema(format="date-time", maxLength=32),
    ] = ""


class MoveStatus(Base):
    phase: Annotated[
        str,
        Meta(description="Surging, Returning, Returned, or Reverted: somebody else has set its size back."),
        schema(maxLength=32),
    ] = ""
    generation: Annotated[
        int, Meta(description="Of the workload when it was seen surged."), schema(format="int64", minimum=0)
    ] = 0
    replicas: Annotated[_Replicas, Meta(description="Its size then.")] = 0
    tried_version: Annotated[
        str,
        Meta(description="Of the workload when it was last told to grow: while it has that one, it may still do so."),
        schema(maxLength=64),
    ] = ""
    tried_autoscaler_version: Annotated[str, Meta(description="Of its autoscaler, then."), schema(maxLength=64)] = ""
    ready_at: Annotated[str, Meta(description="When all replacements were ready."), schema(format="date-time")] = ""
    message: Annotated[str, Meta(description="What it waits for."), schema(maxLength=1024)] = ""


class Move(Object):
    """A workload whose pods leave their nodes: it has more replicas meanwhile, and then its own number again."""

    spec: Annotated[MoveSpec, Meta(description="What was decided.")] = field(default_factory=MoveSpec)
    status: Annotated[MoveStatus, Meta(description="How far it is.")] = field(default_factory=MoveStatus)
