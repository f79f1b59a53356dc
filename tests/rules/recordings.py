"""Replays what kube-scheduler decided (tests/golden) with the rules, and tells where they differ.

The tests replay a sample. By hand, everything or one scenario:

    python tests/rules/recordings.py
    python tests/rules/recordings.py kube-scheduler-1.35 17
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import msgspec

from wukong.api.core import Pod
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.api.profile import Profile, default_profile
from wukong.api.scheduler_config import read_scheduler_config
from wukong.api.versions import find_version
from wukong.rules import Cluster, Decision, decide

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = (
    *(f"kube-scheduler-1.{minor}" for minor in (33, 34, 35, 36, 37)),
    "kube-scheduler-1.37-preemption",
    "packing",
    "ratio",
)

Scenario = dict[str, Any]
Attempt = dict[str, Any]


class Family(msgspec.Struct):
    """The one field of a scenario that a sample is chosen by."""

    family: str


@cache
def lines_by_family(name: str) -> dict[str, list[bytes]]:
    """The scenarios of a recording as they are written; decoding all of them takes seconds."""
    families: dict[str, list[bytes]] = {}
    with gzip.open(GOLDEN / f"{name}.jsonl.gz") as lines:
        for line in lines:
            families.setdefault(msgspec.json.decode(line, type=Family).family, []).append(line)
    return families


def scenarios(name: str) -> list[Scenario]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def sample(name: str, family: str, every: int) -> list[Scenario]:
    """Every n-th scenario of a family, beginning with the first."""
    return [json.loads(line) for line in lines_by_family(name).get(family, [])[::every]]


def profile_of(name: str, scenario: Scenario) -> Profile:
    version, _ = find_version(scenario["version"])
    config = GOLDEN / f"{name}.yaml"
    return read_scheduler_config(config.read_bytes(), version) if config.exists() else default_profile(version)


def mismatches(name: str, scenario: Scenario) -> Iterator[str]:
    """One line per difference between the recording and the rules."""
    profile = profile_of(name, scenario)
    cluster = Cluster(objects_of(scenario))
    for number, step in enumerate(scenario["steps"]):
        pod = pod_of(step["pod"])
        for attempt in step["attempts"]:
            nominated = attempt["node"] if attempt.get("nominated") else None
            for difference in fewest_differences(cluster, pod, profile, nominated, attempt):
                yield f"{name} {scenario['seed']} ({scenario['family']}), step {number}: {difference}"
            for victim in attempt.get("preemption", {}).get("victims", []):
                cluster.remove(victim)
        last = step["attempts"][-1]
        if last["outcome"] == "bound":
            pod.status.start_time = step.get("startTime")
            cluster.add(pod, last["node"])


def fewest_differences(
    cluster: Cluster, pod: Pod, profile: Profile, nominated: str | None, attempt: Attempt
) -> list[str]:
    """What differs; nothing if it is as recorded in one of the orders of budgets that 1.37 may take them in."""
    first = list(differences(attempt, decide(cluster, pod, profile, nominated)))
    if not first or not profile.version.budgets_stop_at_first_broken:
        return first
    budgets = cluster.pod_disruption_budgets
    try:
        for order in permutations(budgets):
            cluster.pod_disruption_budgets = list(order)
            if not any(differences(attempt, decide(cluster, pod, profile, nominated))):
                return []
    finally:
        cluster.pod_disruption_budgets = budgets
    return first


def differences(attempt: Attempt, decision: Decision) -> Iterator[str]:
    decided = {
        "feasible": decision.feasible,
        "scores": decision.scores,
        "final": decision.final,
        "message": decision.message,
        "preemption": as_recorded(decision),
    }
    for what, expected in recorded(attempt).items():
        if decided[what] != expected:
            yield f"{what}: recorded {expected}, decided {decided[what]}"
    if attempt["outcome"] == "bound" and attempt["node"] not in decision.best:
        yield f"node: recorded {attempt['node']}, decided one of {decision.best}"


def recorded(attempt: Attempt) -> dict[str, object]:
    names = attempt["feasible"]
    scores = attempt.get("scores", {})
    return {
        "feasible": names,
        "scores": {plugin: dict(zip(names, points, strict=True)) for plugin, points in scores.items()},
        "final": dict(zip(names, attempt["final"], strict=True)) if "final" in attempt else {},
        "message": attempt.get("message"),
        "preemption": attempt.get("preemption"),
    }


def as_recorded(decision: Decision) -> dict[str, object] | None:
    """The recordings list the victims by name; the order in which they were given up is among the candidates."""
    chosen = decision.preemption
    if chosen is None:
        return None
    return {"node": chosen.node, "victims": sorted(chosen.victims), "candidates": chosen.candidates}


def objects_of(scenario: Scenario) -> Objects:
    items = [
        *({"kind": "Node", **node} for node in scenario["nodes"]),
        *({"kind": "Pod", **pod} for pod in scenario["existing"]),
        *({"kind": "PodDisruptionBudget", **budget} for budget in scenario["podDisruptionBudgets"]),
        *({"kind": "Namespace", "metadata": namespace} for namespace in scenario["namespaces"]),
        *scenario["workloads"],
    ]
    objects = Objects()
    for obj in decode_objects(json.dumps({"kind": "List", "items": items}).encode()):
        objects.add(obj)
    return objects


def pod_of(manifest: dict[str, Any]) -> Pod:
    (pod,) = decode_objects(json.dumps({"kind": "Pod", **manifest}).encode())
    assert isinstance(pod, Pod)
    return pod


def replay(task: tuple[str, Scenario]) -> tuple[int, list[str]]:
    """The number of attempts in the scenario, and the mismatches."""
    name, scenario = task
    return sum(len(step["attempts"]) for step in scenario["steps"]), list(mismatches(name, scenario))


def main(*wanted: str) -> int:
    begin = time.monotonic()
    failures = 0
    for name in wanted[:1] or FILES:
        chosen = [scenario for scenario in scenarios(name) if not wanted[1:] or str(scenario["seed"]) in wanted[1:]]
        with Pool() as pool:
            results = pool.map(replay, [(name, scenario) for scenario in chosen], chunksize=4)
        differences = [line for _, lines in results for line in lines]
        failures += len(differences)
        attempts = sum(count for count, _ in results)
        sys.stdout.write("".join(f"{line}\n" for line in differences))
        sys.stdout.write(f"{name}: {len(chosen)} scenarios, {attempts} attempts, {len(differences)} mismatches\n")
    sys.stdout.write(f"{time.monotonic() - begin:.0f} s\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
