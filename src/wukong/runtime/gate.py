"""The gate: asked before every act of ours that takes a pod or a node away. Pure: an action, the state and the time.

    Evict, Delete of a pod, node or virtual machine, a cordon or taint of a node, a scale-down, a pod marked as a victim
        ├─ what must never be touched ─► Forbid     static pods, named namespaces, novasphere.dev/never-move: "true"
        ├─ too many lately            ─► Hold       the key comes back
        ├─ mode Observe               ─► Forbid     said, not done
        └─                               Allow      as is every other action

Asked through `work_cycle` by the live loop and by the embedded processes; Kubernetes' own actors are not asked. It
judges by the mirror: a pod that the mirror does not show is gone, and what is done to it has no effect. Everything it
says is counted here and nowhere else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from wukong.actions import Action, Delete, Evict, Note, Patch, Scale
from wukong.api.core import NEVER_MOVE, Node, Pod, Taint
from wukong.api.kinds import NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.kubevirt import VirtualMachineInstance
from wukong.api.resources import Key
from wukong.errors import GateRefusal
from wukong.runtime.delivery import object_of
from wukong.semantics.tolerations import HARD_EFFECTS, tolerates
from wukong.state import State

MIRROR_POD = "kubernetes.io/config.mirror"  # the API's shadow of a static pod: only its kubelet can end that
VICTIM = ("DisruptionTarget", "True")  # the condition of a pod that is about to go
_KEPT = 4096  # refusals that were said already

Act = Literal["evict", "delete-pod", "delete-vm", "delete-node", "cordon", "taint", "scale-down"]
Result = Literal["allowed", "held", "forbidden", "observed", "dry-run"]
Count = Callable[[Act, Result], None]


class GateSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The rates are generous: they are there for what runs wild. A drain of forty full nodes at once passes."""

    mode: Annotated[
        Literal["Enforce", "Observe"],
        Meta(description="Observe: say what would take a pod or node away.", extra={"flag": "--gate"}),
    ] = "Enforce"
    never_move_namespaces: Annotated[
        tuple[str, ...], Meta(description="Whose pods nobody takes away.", extra={"metavar": "NAMES"})
    ] = ()
    evictions_per_minute: Annotated[int, Meta(ge=1, description="At most so many.")] = 6000
    pod_deletions_per_minute: Annotated[int, Meta(ge=1, description="At most so many.")] = 6000
    vm_deletions_per_minute: Annotated[int, Meta(ge=1, description="At most so many, restarts included.")] = 600
    node_deletions_per_minute: Annotated[int, Meta(ge=1, description="At most so many.")] = 600
    cordons_per_minute: Annotated[int, Meta(ge=1, description="At most so many, taints included.")] = 600
    scale_downs_per_minute: Annotated[int, Meta(ge=1, description="At most so many.")] = 600


class Allow(msgspec.Struct, frozen=True):
    """Do it."""


class Hold(msgspec.Struct, frozen=True):
    """Not now. `is_news` is false while the same act has been held all along."""

    reason: str
    again_seconds: float
    is_news: bool = True


class Forbid(msgspec.Struct, frozen=True):
    """Not at all. `is_news` is false if it was said before of this object."""

    reason: str
    is_news: bool = True


Verdict = Allow | Hold | Forbid
ALLOW = Allow()


class Gate:
    def __init__(
        self,
        settings: GateSettings | None = None,
        *,
        is_dry_run: bool = False,
        count: Count = lambda act, result: None,
    ) -> None:
        """`is_dry_run` only tells how to count: the cluster's own layer sees that nothing is done."""
        self.settings = settings or GateSettings()
        self._is_dry_run, self._count = is_dry_run, count
        rates = self.settings
        cordons = Bucket(rates.cordons_per_minute)
        self._buckets: dict[Act, Bucket] = {
            "evict": Bucket(rates.evictions_per_minute),
            "delete-pod": Bucket(rates.pod_deletions_per_minute),
            "delete-vm": Bucket(rates.vm_deletions_per_minute),
            "delete-node": Bucket(rates.node_deletions_per_minute),
            "cordon": cordons,
            "taint": cordons,
            "scale-down": Bucket(rates.scale_downs_per_minute),
        }
        self._held: set[Act] = set()
        self._said: OrderedDict[tuple[Act, str, Key, str], None] = OrderedDict()

    def fork(self) -> Gate:
        """An independent copy, which counts in the same place."""
        copy = Gate(self.settings, is_dry_run=self._is_dry_run, count=self._count)
        for act, bucket in self._buckets.items():
            copy._buckets[act].set_to(bucket)
        copy._held, copy._said = set(self._held), self._said.copy()
        return copy

    def check(self, action: Action, state: State, now: float) -> Verdict:
        """Whether this may be done now. What is allowed counts towards its rate, whatever the API server answers."""
        if _marks_victim(action):  # what may not be deleted is not marked for it either; only the deletion is counted
            observes = "the gate only observes" if self.settings.mode == "Observe" else ""
            reason = self._find_protection("delete-pod", action, state)
            if reason or observes:
                return self._forbid("delete-pod", action, reason or observes, "forbidden" if reason else "observed")
            return ALLOW
        act = act_of(action, state)
        if act is None:
            return ALLOW
        if reason := self._find_protection(act, action, state):
            return self._forbid(act, action, reason, "forbidden")
        wait = self._buckets[act].take(now)
        if wait > 0:
            self._count(act, "held")
            is_news = act not in self._held
            self._held.add(act)
            return Hold(f"more than {self._buckets[act].per_minute} a minute", wait, is_news)
        self._held.discard(act)
        if self.settings.mode == "Observe":
            return self._forbid(act, action, "the gate only observes", "observed")
        self._count(act, "dry-run" if self._is_dry_run else "allowed")
        return ALLOW

    def _forbid(self, act: Act, action: Action, reason: str, result: Result) -> Forbid:
        self._count(act, result)
        resource, key = object_of(action)
        place = (act, resource.kind, key, reason)
        is_news = place not in self._said
        self._said[place] = None
        if len(self._said) > _KEPT:
            self._said.popitem(last=False)
        return Forbid(reason, is_news)

    def _find_protection(self, act: Act, action: Action, state: State) -> str:
        """Why nobody may do this; "" if nothing speaks against it."""
        _, key = object_of(action)
        if act in ("evict", "delete-pod"):
            pod = state.get(Pod, key)
            if pod is not None and is_static(pod):
                return "it is a static pod"
            return self._find_pod_protection(key.namespace, pod)
        if act == "scale-down":
            return self._find_pod_protection(key.namespace, None)
        if act == "delete-vm":
            pods = [*_pods_of_machine(key, state), None]
            return next(filter(None, (self._find_pod_protection(key.namespace, pod) for pod in pods)), "")
        lost = _pods_lost(act, action, state)
        reasons = ((pod.key, self._find_pod_protection(pod.metadata.namespace, pod)) for pod in lost)
        return next((f"pod {name} is there: {reason}" for name, reason in reasons if reason), "")

    def _find_pod_protection(self, namespace: str, pod: Pod | None) -> str:
        if namespace in self.settings.never_move_namespaces:
            return f"namespace {namespace} is among those never touched"
        if pod is not None and pod.metadata.annotations.get(NEVER_MOVE) == "true":
            return f"it has the annotation {NEVER_MOVE}"
        return ""


class Bucket:
    """A rate: as many at once as may pass in a minute, and then as they come back."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left, self._at = float(per_minute), 0.0

    def set_to(self, other: Bucket) -> None:
        self._left, self._at = other._left, other._at

    def take(self, now: float) -> float:
        """0.0 if one more may pass, else the seconds until it may. A clock that is set back loses nothing."""
        passed = max(0.0, now - self._at)
        self._left, self._at = min(self.per_minute, self._left + passed * self.per_minute / 60.0), now
        if self._left >= 1.0:
            self._left -= 1.0
            return 0.0
        return max(1.0, (1.0 - self._left) * 60.0 / self.per_minute)


def act_of(action: Action, state: State) -> Act | None:
    """What this takes away; None if it takes away neither a pod nor a node."""
    match action:
        case Evict():
            return "evict"
        case Delete(resource) if resource == PODS:
            return "delete-pod"
        case Delete(resource) if resource in (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES):
            return "delete-vm"
        case Delete(resource) if resource == NODES:
            return "delete-node"
        case Patch(resource, key, _, "") if resource == NODES:
            spec = _written_spec(action)
            if _new_taints(spec, state.get(Node, key)):  # first: a taint may end pods, a cordon beside it ends none
                return "taint"
            return "cordon" if spec.get("unschedulable") else None
        case Scale(resource, key, replicas):
            workload = state.objects.get(resource.group_kind, {}).get(key)
            replicas_now = getattr(getattr(workload, "spec", None), "replicas", None)
            return (
                "scale-down" if workload is None or replicas < (1 if replicas_now is None else replicas_now) else None
            )
    return None


def _marks_victim(action: Action) -> bool:
    """Whether this tells a pod that it is about to be deleted, as a scheduler does before it preempts."""
    if not isinstance(action, Patch) or (action.resource, action.subresource) != (PODS, "status"):
        return False
    status = action.patch.body.get("status") if isinstance(action.patch.body, dict) else None
    conditions = status.get("conditions") or () if isinstance(status, dict) else ()
    return any((entry.get("type"), entry.get("status")) == VICTIM for entry in conditions)


def note_of(action: Action, verdict: Hold | Forbid) -> Note:
    """The Event that tells of it."""
    resource, key = object_of(action)
    reason = "ActHeld" if isinstance(verdict, Hold) else "ActForbidden"
    return Note(resource, key, reason, f"{type(action).__name__}: not done: {verdict.reason}", is_warning=True)


def refusal_of(verdict: Hold | Forbid) -> GateRefusal:
    """What an action fails with that may not be done: its key comes back when the gate said, or after a backoff."""
    return GateRefusal(verdict.reason, again_seconds=verdict.again_seconds if isinstance(verdict, Hold) else None)


def is_static(pod: Pod) -> bool:
    """Whether a pod is run from a file on its node: the API only mirrors it."""
    owners = pod.metadata.owner_references
    return MIRROR_POD in pod.metadata.annotations or any(owner.kind == "Node" for owner in owners)


def _pods_of_machine(key: Key, state: State) -> Iterable[Pod]:
    """The pods in which the virtual machine of this key runs: its instance has its name, and owns them."""
    instance = state.get(VirtualMachineInstance, key)
    keys = state.owners.owned_by(instance.metadata.uid, PODS) if instance is not None else []
    return [pod for pod_key in keys if (pod := state.get(Pod, pod_key)) is not None and not pod.is_finished]


def _pods_lost(act: Act, action: Action, state: State) -> Iterable[Pod]:
    """The pods that an act on their node ends. Static pods are part of the node."""
    _, key = object_of(action)
    if act == "cordon":
        return []
    pods = [pod for pod in state.pods_on(key.name) if not pod.is_finished and not is_static(pod)]
    if act == "delete-node":
        return pods
    assert isinstance(action, Patch)
    taints = [
        taint for taint in _new_taints(_written_spec(action), state.get(Node, key)) if taint.effect == "NoExecute"
    ]
    return [pod for pod in pods if not all(_tolerates_for_good(pod, taint) for taint in taints)]


def _tolerates_for_good(pod: Pod, taint: Taint) -> bool:
    """Whether the pod outlasts a NoExecute taint. The first toleration that matches counts, as in Kubernetes."""
    matching = (entry for entry in pod.spec.tolerations if tolerates(entry, taint.key, taint.value, taint.effect))
    first = next(matching, None)
    return first is not None and first.toleration_seconds is None


def _written_spec(action: Patch) -> dict[str, Any]:
    """What a patch writes into a node's spec, as far as the gate is concerned."""
    if action.patch.type != "json":
        return (action.patch.body.get("spec") or {}) if isinstance(action.patch.body, dict) else {}
    written: dict[str, Any] = {}
    for operation in action.patch.body:
        path, value = operation["path"], operation.get("value")
        if operation["op"] not in ("add", "replace"):
            continue
        if path == "/spec" and isinstance(value, dict):
            written |= value
        elif path == "/spec/unschedulable":
            written["unschedulable"] = value
        elif path.startswith("/spec/taints"):
            written["taints"] = [*written.get("taints", []), *(value if isinstance(value, list) else [value])]
    return written


def _new_taints(spec: dict[str, Any], node: Node | None) -> list[Taint]:
    """The taints that keep pods out or drive them out, and that the node does not have yet."""
    written = [taint for taint in spec.get("taints") or () if isinstance(taint, dict) and "$patch" not in taint]
    taints = [
        Taint(key=taint.get("key", ""), value=taint.get("value", ""), effect=taint.get("effect", ""))
        for taint in written
    ]
    present = node.spec.taints if node is not None else []
    return [taint for taint in taints if taint.effect in HARD_EFFECTS and taint not in present]
