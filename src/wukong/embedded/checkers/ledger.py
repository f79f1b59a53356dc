"""The ledger tells the truth: every record in it was true of its workload, and at rest it says what the cluster has.

While things happen: a record is of a generation that was observed with all its replicas updated and available, nothing
else or beside them; it is in the history once, and stays there; what is said of a workload never becomes older. At
rest: of every workload that is complete the ledger says its generation and replicas, and what is gone is closed. Where
one process hears of every change, nothing that was true is missing, and as many pods were ready at a time as it says.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from wukong.api.apps import Deployment, ReplicaSet, StatefulSet
from wukong.api.core import Pod
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, WORKLOAD_RECORDS
from wukong.api.ledger import WorkloadRecord
from wukong.api.meta import Object, controller_of
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.world import World
from wukong.state import Change

Truth = tuple[str, int]  # uid and generation


class LedgerTruth:
    kinds: ClassVar[frozenset[str]] = frozenset(
        resource.group_kind for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, PODS, WORKLOAD_RECORDS)
    )

    def __init__(self, findings: Findings) -> None:
        self.findings, self.is_kept = findings, _keeps_ledger(findings.world)
        self._truths: dict[Truth, int] = {}  # → replicas
        self._owners: dict[str, str] = {}  # uid of a ReplicaSet → of its Deployment
        self._ready: Counter[str] = Counter()  # uid of a workload → its ready pods
        self._counts: dict[str, set[int]] = {}  # uid of a workload → how many were ready at a time

    def fork(self, findings: Findings) -> LedgerTruth:
        copy = LedgerTruth(findings)
        copy._truths, copy._owners, copy._ready = dict(self._truths), dict(self._owners), self._ready.copy()
        copy._counts = {uid: set(counts) for uid, counts in self._counts.items()}
        return copy

    def observe(self, change: Change) -> None:
        new, old = change.new, change.old
        if isinstance(new, Deployment | StatefulSet):
            if _is_true(document := _document_of(new)):
                self._truths[new.metadata.uid, new.metadata.generation] = document["spec"].get("replicas", 1)
        elif isinstance(new, ReplicaSet):
            owner = controller_of(new.metadata)
            if owner is not None:
                self._owners[new.metadata.uid] = owner.uid
        elif isinstance(new, Pod) or isinstance(old, Pod):
            self._count(old, -1)
            self._count(new, 1)
        elif isinstance(new, WorkloadRecord):
            self._check_record(new, old if isinstance(old, WorkloadRecord) else None)
        elif isinstance(old, WorkloadRecord):
            self.findings.report(f"ledger {change.key}", "erased")

    def _count(self, pod: Object | None, difference: int) -> None:
        if not isinstance(pod, Pod) or pod.metadata.deletion_timestamp is not None:
            return
        owner = controller_of(pod.metadata)
        conditions = (_document_of(pod).get("status") or {}).get("conditions") or ()
        if owner is None or not any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions):
            return
        uid = self._owners.get(owner.uid, owner.uid)
        self._ready[uid] += difference
        self._counts.setdefault(uid, {0}).add(self._ready[uid])

    # ---- records

    def _check_record(self, subject: WorkloadRecord, before: WorkloadRecord | None) -> None:
        place, document = f"ledger {subject.metadata.name}", _document_of(subject)
        history: list[dict[str, Any]] = document["history"]
        ids = [f"{entry['uid']}-{entry['generation']}" for entry in history]
        former = [f"{e['uid']}-{e['generation']}" for e in _document_of(before)["history"]] if before else []
        if len(set(ids)) < len(ids):
            self.findings.report(place, "a generation is in the history twice")
        if not set(former) <= set(ids):
            self.findings.report(place, "a record has left the history")
        for entry in [document["record"], *(history[index] for index, name in enumerate(ids) if name not in former)]:
            self._check_entry(place, entry, subject.metadata.name)
        if before is not None:
            self._check_order(place, _document_of(before)["record"], document["record"])

    def _check_entry(self, place: str, entry: dict[str, Any], name: str) -> None:
        uid, generation, replicas = entry["uid"], entry["generation"], entry.get("replicas", 0)
        if f"{entry['kind']}.{entry['namespace']}.{entry['name']}".lower() != name:
            self.findings.report(place, f"has a record of {entry['kind']} {entry['namespace']}/{entry['name']}")
        if self._truths.get((uid, generation)) != replicas or entry.get("available", 0) != replicas:
            text = f"{replicas} replicas at generation {generation}, which was never so"
            self.findings.report(place, text)
        if len(self.findings.world.processes) == 1 and replicas not in self._counts.get(uid, {0}):
            self.findings.report(place, f"{replicas} replicas, and never were so many pods ready at a time")

    def _check_order(self, place: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        if before["uid"] == after["uid"]:
            if after["generation"] < before["generation"]:
                text = f"generation {after['generation']} after {before['generation']}"
                self.findings.report(place, f"goes back in time: {text}")
        elif after["created"] < before["created"]:
            self.findings.report(place, "goes back in time: to a workload that was created before")

    # ---- at rest

    def check(self) -> None:
        """What must hold at rest."""
        if not self.is_kept:
            return
        state = self.findings.world.state
        records = {record.metadata.name: _document_of(record) for record in state.all(WorkloadRecord)}
        alive: dict[str, str] = {}  # name of the record → uid
        for workload in (*state.all(Deployment), *state.all(StatefulSet)):
            kind = "deployment" if isinstance(workload, Deployment) else "statefulset"
            name = f"{kind}.{workload.metadata.namespace}.{workload.metadata.name}"
            alive[name] = workload.metadata.uid
            if _is_true(_document_of(workload)) and workload.metadata.deletion_timestamp is None:
                self._check_said(name, workload, records.get(name))
        for name, document in records.items():
            record = document["record"]
            if record["uid"] != alive.get(name) and not record.get("closedAt"):
                self.findings.report(f"ledger {name}", "at rest its workload is gone, and it is not closed")
        if len(self.findings.world.processes) == 1:
            self._check_completeness(records)

    def _check_said(self, name: str, workload: Object, document: dict[str, Any] | None) -> None:
        record = (document or {}).get("record") or {}
        meta = workload.metadata
        said = record.get("uid"), record.get("generation"), record.get("replicas", 0), bool(record.get("closedAt"))
        if said != (meta.uid, meta.generation, _document_of(workload)["spec"].get("replicas", 1), False):
            text = f"at rest its workload is complete at generation {meta.generation}, and the ledger says {said}"
            self.findings.report(f"ledger {name}", text)

    def _check_completeness(self, records: dict[str, dict[str, Any]]) -> None:
        histories = {(e["uid"], e["generation"]) for document in records.values() for e in document["history"]}
        for uid, generation in sorted(set(self._truths) - histories):
            self.findings.report(f"workload {uid}", f"generation {generation} was true and is in no history")


def _is_true(document: dict[str, Any]) -> bool:
    """Whether a workload is observed, and every pod it has is new and available, as many as it asks for."""
    status, meta = document.get("status") or {}, document["metadata"]
    if "deletionTimestamp" in meta or status.get("observedGeneration") != meta.get("generation"):
        return False
    wanted = document["spec"].get("replicas", 1)
    return all(status.get(field, 0) == wanted for field in ("replicas", "updatedReplicas", "availableReplicas"))


def _document_of(subject: Object) -> dict[str, Any]:
    document: dict[str, Any] = subject.document  # type: ignore[attr-defined]
    return document


def _keeps_ledger(world: World) -> bool:
    """Whether anybody in this world does."""
    controllers = (one for process in world.processes for one in process.dispatch.controllers.values())
    return any(getattr(controller, "keeps_ledger", False) for controller in controllers)
