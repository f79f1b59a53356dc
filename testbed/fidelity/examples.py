"""A scenario of examples/ made fit to be played beside others on a real cluster: names of its own, and no long waits.

Both sides play what comes out of here. Changed are the namespace and the names of nodes and priority classes; pods keep
to the scenario's own nodes and take seconds to start, so that nothing depends on milliseconds; progress deadlines
and tolerations are seconds instead of minutes, and what happens next happens as soon as the last is over. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from testbed.fidelity.scenarios import DEADLINE, FOR, REGION, START, USUAL_START, Json, brief
from wukong.embedded.scenario.format.fields import RESOURCE_OF, seconds_of

STEP, DRAIN, LOSS, END = 12, 25, 72, 75  # seconds between two moments, after a drain, after a loss, and after the last
NODE_ACTS = ("cordon", "uncordon", "drain", "notReady", "ready", "kill")
LOSSES = ("notReady", "kill")
START_SECONDS, FORMER_START_SECONDS = "sim.novasphere.dev/start-seconds", "testbed.wukong/start-seconds"
UNKNOWN = ("PlacementPolicy", "ClusterPlacementPolicy")  # a bare control plane does not have these kinds


def is_playable(scenario: Json) -> bool:
    return not scenario.get("files") and not any(each["kind"] in UNKNOWN for each in _documents(scenario))


def moved(scenario: Json, own: str) -> Json:
    made = deepcopy(scenario)
    made.pop("expect", None)
    for group in made.get("nodes", ()):
        name = "name" if "name" in group else "namePrefix"
        group[name] = f"{own}-{group[name]}"
        group["labels"] = {**group.get("labels", {}), FOR: own, REGION: own}
    for document in _documents(made):
        _move(document, own)
    for moment in made.get("timeline", ()):
        _move_moment(moment, own)
    _hurry(made)
    _let_adopt(made)
    return made


def _documents(scenario: Json) -> Iterator[Json]:
    yield from scenario.get("manifests", ())
    for moment in scenario.get("timeline", ()):
        given = moment.get("apply", [])
        yield from given if isinstance(given, list) else [given]


def _move(document: Json, own: str) -> None:
    meta, spec = document["metadata"], document.get("spec", {})
    if RESOURCE_OF[document["kind"]].namespaced:
        meta["namespace"] = own
    elif document["kind"] == "PriorityClass":
        meta["name"] = f"{own}-{meta['name']}"
    if document["kind"] == "Deployment":
        spec["progressDeadlineSeconds"] = DEADLINE
    pod = document if document["kind"] == "Pod" else spec.get("template")
    if pod:
        _move_pod(pod, own, START.get(document["kind"], USUAL_START))


def _move_pod(pod: Json, own: str, start: int) -> None:
    meta, spec = pod.setdefault("metadata", {}), dict(pod["spec"])
    pod["spec"] = spec  # one written once and used by many
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), FOR: own}
    spec["tolerations"] = [*spec.get("tolerations", ()), *brief()]
    for name, prefix in (("nodeName", f"{own}-"), ("priorityClassName", f"{own}-")):
        if name in spec:
            spec[name] = f"{prefix}{spec[name]}"
    annotations = meta.get("annotations", {})
    default = {} if FORMER_START_SECONDS in annotations else {START_SECONDS: str(start)}
    meta["annotations"] = {**default, **annotations}


def _move_moment(moment: Json, own: str) -> None:
    for act in NODE_ACTS:
        if act in moment:
            moment[act] = f"{own}-{moment[act]}"
    for act in ("patch", "scale", "delete"):
        target: Any = moment.get(act)
        if target:
            target["namespace"] = own


def _let_adopt(scenario: Json) -> None:
    """Who adopts pods comes when they are there: a controller that has not heard of them yet makes others."""
    if any(each["kind"] == "Pod" for each in scenario["manifests"]):
        late = [each for each in scenario["manifests"] if each["kind"] == "ReplicaSet"]
        scenario["manifests"] = [each for each in scenario["manifests"] if each["kind"] != "ReplicaSet"]
        scenario["timeline"] = [*({"at": "6s", "apply": each} for each in late), *scenario["timeline"]]


def _hurry(scenario: Json) -> None:
    at, before, longest = 0, 0, STEP
    moments = sorted(scenario.get("timeline", ()), key=lambda moment: seconds_of(moment["at"]) or 0)
    for moment in moments:
        planned_faults = seconds_of(moment["at"]) or 0
        at += min(planned_faults - before, longest)
        own = LOSS if any(act in moment for act in LOSSES) else DRAIN if "drain" in moment else STEP
        before, longest = planned_faults, max(own, longest) if planned_faults == before else own
        moment["at"] = f"{at}s"
    scenario["timeline"] = moments
    scenario["until"] = f"{at + longest + END}s"
