"""How long pods take, as scenarios and options say it: `20` for all pods, `deploy/web: 40` for those of one workload.

`startSeconds` and `stopSeconds` of a scenario hold it, and `wukong sim run --start-seconds` adds to them. Pure; called
by read.py for problems, and by app/embedded.py for what kubelets go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, VIRTUAL_MACHINES
from wukong.api.resources import Key, Resource
from wukong.embedded.actors.kubelet.durations import Durations, PodDurations, Workload
from wukong.embedded.scenario.format.fields import Scenario
from wukong.errors import InputError, nearest
from wukong.ports import Document

ALL = "all"
FIELDS = {"startSeconds": "start_seconds", "stopSeconds": "stop_seconds"}  # of a scenario → of its struct
MOST_SECONDS = 1_000_000  # eleven days
_SHORT_NAMES = {
    "deploy": DEPLOYMENTS,
    "sts": STATEFUL_SETS,
    "ds": DAEMON_SETS,
    "rs": REPLICA_SETS,
    "po": PODS,
    "vm": VIRTUAL_MACHINES,
}
_RESOURCES = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, JOBS, VIRTUAL_MACHINES, PODS)
_ALWAYS_WRITTEN = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)  # nobody but people makes these
_WORDS: dict[str, Resource] = _SHORT_NAMES | {
    word: resource for resource in _RESOURCES for word in (resource.kind.lower(), resource.plural)
}


def read_workload(text: str) -> Workload:
    """The workload that `deploy/web` or `deploy/shop/web` names. Raises InputError for anything else."""
    word, *names = text.split("/")
    resource = _WORDS.get(word.lower())
    if resource is None or len(names) not in (1, 2) or not all(names):
        hint = nearest(word, _WORDS) if resource is None else ""
        raise InputError(f'expected a workload such as deploy/web or deploy/shop/web, got "{text:.200}".{hint}')
    return resource.group_kind, Key(*(names if len(names) == 2 else ["default", *names]))


def find_duration_problems(scenario: Scenario) -> Iterator[str]:
    for field, attribute in FIELDS.items():
        for name, seconds in by_name(getattr(scenario, attribute)).items():
            place = f"$.{field}.{name}" if isinstance(getattr(scenario, attribute), dict) else f"$.{field}"
            if name != ALL:
                try:
                    read_workload(name)
                except InputError as error:
                    yield f"$.{field}: {error}"
            if not 0 <= seconds <= MOST_SECONDS:
                yield f"{place}: expected seconds from 0 to {MOST_SECONDS:,}, got {seconds:g}."


def by_name(seconds: float | Mapping[str, float]) -> dict[str, float]:
    """As a mapping, also where a single number stands for all pods."""
    return dict(seconds) if isinstance(seconds, Mapping) else {ALL: seconds}


def build_durations(scenario: Scenario, documents: Iterable[Document] = ()) -> PodDurations:
    """What kubelets go by. Raises InputError for workloads that are neither in the scenario nor among `documents`."""
    of_all: dict[str, float] = {}
    by_workload: dict[Workload, dict[str, float]] = {}
    for attribute in FIELDS.values():
        for name, seconds in by_name(getattr(scenario, attribute)).items():
            values = of_all if name == ALL else by_workload.setdefault(read_workload(name), {})
            values[attribute] = seconds
    if by_workload:
        _refuse_missing(by_workload, [*documents, *scenario.documents])
    return PodDurations(
        Durations(**of_all), {workload: Durations(**values) for workload, values in by_workload.items()}
    )


def _refuse_missing(workloads: Iterable[Workload], documents: list[Document]) -> None:
    problems = []
    for resource in _ALWAYS_WRITTEN:
        present = [_key_of(document) for document in documents if document["kind"] == resource.kind]
        named = [key for group_kind, key in workloads if group_kind == resource.group_kind]
        for key in [key for key in named if key not in present]:
            problems.append(
                f"how long pods take: there is no {resource.kind} {key}.{nearest(str(key), map(str, present))} "
                "Name one of the cluster or of the manifests, with its namespace."
            )
    if problems:
        raise InputError(*problems)


def _key_of(document: Document) -> Key:
    return Key(document["metadata"].get("namespace") or "default", document["metadata"]["name"])
