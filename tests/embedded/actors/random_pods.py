"""Random histories of pods in a mirror, for what keeps counts of them: they come, change, go, and are listed again."""

from __future__ import annotations

from hypothesis import strategies as st

from wukong.embedded.world.objects import Pod, read
from wukong.ports import Document
from wukong.state import State

NAMES, OWNERS, NODES = ("a", "b", "c", "d", "e", "f"), ("u1", "u2", ""), ("", "n1", "n2")
APPS, COSTS = ("web", "db"), ("0", "5", "-3")
START = 1_767_225_600
TIMES = [f"2026-01-01T00:00:{second:02}Z" for second in (0, 1, 2, 9, 40)]


@st.composite
def pods(draw: st.DrawFn, name: str | None = None) -> Document:
    """A pod as the server has it, with what counting and ranking look at left to chance."""
    name = name or draw(st.sampled_from(NAMES))
    owner, creation = draw(st.sampled_from(OWNERS)), draw(st.integers(1, 3))
    namespace = draw(st.sampled_from(("shop", "shop", "other")))
    meta: Document = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}-{name}-{creation}",
        "creationTimestamp": draw(st.sampled_from(TIMES)),
        "labels": {"app": draw(st.sampled_from(APPS))} | ({"tier": "1"} if draw(st.booleans()) else {}),
        "annotations": {"controller.kubernetes.io/pod-deletion-cost": draw(st.sampled_from(COSTS))},
    }
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"set-{owner}", "uid": owner}
        meta["ownerReferences"] = [reference | {"controller": draw(st.sampled_from((True, True, False)))}]
    if draw(st.sampled_from((True, False, False))):
        meta["deletionTimestamp"] = TIMES[-1]
    ready = {"type": "Ready", "status": draw(st.sampled_from(("True", "False")))}
    ready |= {"lastTransitionTime": draw(st.sampled_from(TIMES))} if draw(st.booleans()) else {}
    status = {
        "phase": draw(st.sampled_from(("Pending", "Running", "Running", "Running", "Succeeded"))),
        "conditions": [ready] if draw(st.booleans()) else [],
        "containerStatuses": [{"name": "main", "restartCount": draw(st.integers(0, 1))}],
    }
    return {"metadata": meta, "spec": {"nodeName": draw(st.sampled_from(NODES))}, "status": status}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, list[Document]]]:
    """What a watch or a list brings, in order."""
    steps = []
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(("ADDED", "MODIFIED", "MODIFIED", "DELETED", "list")))
        steps.append((kind, draw(st.lists(pods(), max_size=5)) if kind == "list" else [draw(pods())]))
    return steps


def take_in(state: State, step: tuple[str, list[Document]], number: int) -> None:
    kind, documents = step
    listed = [_read(document, number) for document in documents]
    if kind == "list":
        state.replace("Pod", listed)
    elif kind in ("ADDED", "MODIFIED", "DELETED"):
        state.apply(kind, listed[0])  # type: ignore[arg-type]


def _read(document: Document, number: int) -> Pod:
    pod = read("Pod", {**document, "metadata": {**document["metadata"], "resourceVersion": str(number)}})
    assert isinstance(pod, Pod)
    return pod
