"""A case in the embedded cluster: its API server, and its controllers on virtual time. No nodes: pods wait."""

from __future__ import annotations

import re
from typing import Any

from quota_comparison.answers import Answers, Ending, find_failure, read_amounts, read_answer, read_refusal
from quota_comparison.random_case import CLASSES, Case
from wukong.api.kinds import (
    DEPLOYMENTS,
    KINDS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
)
from wukong.api.resources import Key, Resource
from wukong.embedded.actors import make_actors
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

NAMESPACE = "case"
SECONDS = 1200.0  # longer than the longest backoff


def play(case: Case, *, is_reversed: bool = False) -> Answers:
    """`is_reversed`: quotas are asked in the other order; a real server asks them in any."""
    return _Play(case, is_reversed=is_reversed).run()


class _Play:
    def __init__(self, case: Case, *, is_reversed: bool) -> None:
        self.case = case
        names = [quota["metadata"]["name"] for quota in case.quotas]
        self.alias = dict(zip(names, reversed(names) if is_reversed else names, strict=True))
        clock = VirtualClock()
        self.server = Server(clock, definitions=())
        self.world = World(make_actors(self.server), server=self.server, clock=clock)

    def run(self) -> Answers:
        for name, value in CLASSES.items():
            self.server.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        self.server.create(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": self.case.labels}})
        setup = [self._create(LIMIT_RANGES, body) for body in self.case.limit_ranges]
        setup += [self._create(RESOURCE_QUOTAS, self._rename(quota)) for quota in self.case.quotas]
        self.world.run(seconds=5)
        objects = [self._create(KINDS.resource_named(body["kind"]), body) for body in self.case.objects]
        self.world.run(seconds=5)
        resource = KINDS.resource_named(self.case.workload["kind"])
        workload = self._create(resource, self.case.workload)
        self.world.run(seconds=5)
        ending, raised = self._look(), None
        if self.case.raised:
            name = self.alias[self.case.quotas[0]["metadata"]["name"]]
            patch = PatchBody("merge", {"spec": {"hard": self.case.raised}})
            self.server.patch(RESOURCE_QUOTAS, Key(NAMESPACE, name), patch)
            self.world.run(seconds=SECONDS)
            raised = self._look()
        return Answers(setup, objects, workload, ending, raised)

    def _rename(self, quota: Document) -> Document:
        return {**quota, "metadata": {"name": self.alias[quota["metadata"]["name"]]}}

    def _create(self, resource: Resource, body: Document) -> Any:
        try:
            return read_answer(self.server.create(resource, body, NAMESPACE))
        except ClusterError as error:
            return self._restore_names(read_refusal(str(error)))

    def _restore_names(self, text: str) -> str:
        names = {alias: name for name, alias in self.alias.items()}
        return re.sub(r"quota-\d", lambda match: names.get(match[0], match[0]), text)

    def _look(self) -> Ending:
        quotas = self.server.list(RESOURCE_QUOTAS).items
        named = [{**quota, "metadata": {"name": self._restore_names(quota["metadata"]["name"])}} for quota in quotas]
        failing = {find_failure(item) for kind in (REPLICA_SETS, DEPLOYMENTS) for item in self.server.list(kind).items}
        if self.case.workload["kind"] in ("StatefulSet", "Job"):
            failing = self._list_attempts()
        pods = [pod for pod in self.server.list(PODS).items if pod["metadata"].get("ownerReferences")]
        return Ending(
            read_amounts(named, "used"),
            read_amounts(named, "hard"),
            len(pods),
            frozenset(self._restore_names(text) for text in failing if text),
        )

    def _list_attempts(self) -> set[str]:
        """What the controller of the workload failed with last."""
        name = self.case.workload["kind"].lower()
        attempt = self.world.state.attempts.get(name, Key(NAMESPACE, "load"))
        return {read_refusal(attempt.error.partition(": ")[2])} if attempt is not None else set()
