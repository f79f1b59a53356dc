"""What candidates are made from: the change, the play that went wrong, the cluster before it and in the end of it.

Built by search.py. Candidates read it and return values; they play nothing and change nothing.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import msgspec

from wukong.api.apps import Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet, Workload
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Node, Pod, PodAffinityTerm, PodTemplateSpec
from wukong.api.documents import without_nulls
from wukong.api.kinds import KINDS
from wukong.api.meta import LabelSelector, ObjectMeta, controller_of
from wukong.api.resources import Key
from wukong.forecast.advice.candidate import identify
from wukong.forecast.fields import Play
from wukong.forecast.planned_change import PlannedChange
from wukong.ports import Document
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State

_WRITTEN_BY_SERVER = frozenset({"status"})
_META = ("name", "namespace", "labels")
_VERSION = re.compile(r"v?1\.(\d{1,4})(?:\D.*)?")


class StuckWorkload(msgspec.Struct, frozen=True):
    """A workload that a problem is about: its document as the change applies it, or else as the cluster has it."""

    kind: str
    key: Key
    document: Document
    template: PodTemplateSpec

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def replicas(self) -> int:
        replicas = self.document["spec"].get("replicas")
        return replicas if isinstance(replicas, int) else 1

    def with_spec(self, **fields: Any) -> Document:
        """Its document with other values in its spec; None removes one."""
        spec = {**self.document["spec"], **fields}
        return {**self.document, "spec": {name: value for name, value in spec.items() if value is not None}}

    def with_pod_spec(self, **fields: Any) -> Document:
        """The same for the spec of its template."""
        template = self.document["spec"]["template"]
        spec = {name: value for name, value in {**template["spec"], **fields}.items() if value is not None}
        return self.with_spec(template={**template, "spec": spec})

    def selects_itself(self, selector: LabelSelector | None, term: PodAffinityTerm | None = None) -> bool:
        """Whether its own pods are selected, by a selector or by a whole term."""
        labels = self.template.metadata.labels
        if term is None:
            return selects(compile_selector(selector), labels)
        return compile_pod_term(term, self.key.namespace).selects(self.key.namespace, labels, {})


class Question:
    """`before` is the mirror of the cluster at rest, `final` that of the play when nothing more happens."""

    def __init__(
        self, change: PlannedChange, play: Play, before: State, final: State, rolled: frozenset[str] = frozenset()
    ) -> None:
        """`rolled` are the keys of workloads of which the change starts a rollout."""
        self.change, self.play, self.before, self.final, self.rolled = change, play, before, final, rolled

    @cached_property
    def workloads(self) -> list[StuckWorkload]:
        """The workloads that problems name, and those whose pods do not leave a drained node, sorted.

        Their template is read as the API server has it in the end.
        """
        names = {problem.subject.rpartition(" ")[2] for problem in self.play.problems}
        names |= {blocked.workload.rpartition(" ")[2] for blocked in self.play.blocked}
        names |= {name for pod in self.refused_pods if (name := self._workload_of(pod))}
        stuck = []
        for struct in (Deployment, StatefulSet):
            for workload in self.final.all(struct):
                if workload.key in names and workload.spec.template is not None:
                    stuck.append(self._read(workload, workload.spec.template))
        return stuck

    @property
    def blocked_workloads(self) -> list[StuckWorkload]:
        """Those of which a pod has no node: for the others it is not their template that is in the way."""
        names = {blocked.workload.rpartition(" ")[2] for blocked in self.play.blocked}
        return [workload for workload in self.workloads if str(workload.key) in names]

    def _workload_of(self, pod: Pod) -> str:
        """The key of the Deployment or StatefulSet that a pod belongs to; "" if it belongs to none."""
        reference, namespace = controller_of(pod.metadata), pod.metadata.namespace
        owner = self.final.owner(namespace, reference) if reference is not None else None
        if isinstance(owner, ReplicaSet) and (above := controller_of(owner.metadata)) is not None:
            owner = self.final.owner(namespace, above)
        return owner.key if isinstance(owner, Deployment | StatefulSet) else ""

    def is_autoscaled(self, workload: StuckWorkload) -> bool:
        """Whether a HorizontalPodAutoscaler sets its replicas."""
        targets = (
            (autoscaler.metadata.namespace, autoscaler.spec.scale_target_ref)
            for autoscaler in self.final.all(HorizontalPodAutoscaler)
        )
        return any(
            namespace == workload.key.namespace and (target.kind, target.name) == (workload.kind, workload.key.name)
            for namespace, target in targets
        )

    def _read(self, workload: Workload, template: PodTemplateSpec) -> StuckWorkload:
        kind = KINDS[KINDS.group_kind_of(type(workload))]
        key = Key(workload.metadata.namespace, workload.metadata.name)
        document = self.find_document(kind.group_kind, key)
        return StuckWorkload(kind.resource.kind, key, document, template)

    @cached_property
    def budgets(self) -> list[tuple[PodDisruptionBudget, Document]]:
        """The budgets in the way: of evictions that were refused, and those with fewer healthy pods than they ask for.

        Each with its document.
        """
        names = {use.name for use in self.play.touched.budgets}
        covered = [(pod.metadata.namespace, pod.metadata.labels) for pod in self.refused_pods]
        budgets = []
        for budget in self.final.all(PodDisruptionBudget):
            selector = compile_selector(budget.spec.selector)
            is_refusing = any(
                namespace == budget.metadata.namespace and selects(selector, labels) for namespace, labels in covered
            )
            if is_refusing or budget.key in names:
                key = Key(budget.metadata.namespace, budget.metadata.name)
                budgets.append((budget, self.find_document(KINDS.group_kind_of(PodDisruptionBudget), key)))
        return budgets

    @cached_property
    def refused_pods(self) -> list[Pod]:
        """Pods that are still on a node which the change drains."""
        drained = [step.drain for step in self.change.steps if isinstance(step.drain, str)]
        return [pod for node in drained for pod in self.final.pods_on(node) if not pod.is_terminating]

    @property
    def is_stuck(self) -> bool:
        """Whether something never comes to its end; else it only hurts on the way."""
        return self.play.kind in ("needs-nodes", "never-ends")

    def document_of(self, patch: Document) -> Document:
        """The document that a patch is for."""
        kind, (_, _, namespace, name) = KINDS.of_document(patch["kind"], patch["apiVersion"]), identify(patch)
        assert kind is not None, "candidates patch kinds of the table"
        return self.find_document(kind.group_kind, Key(namespace if kind.resource.namespaced else "", name))

    def find_document(self, group_kind: str, key: Key) -> Document:
        """What the change applies, or else what is in the cluster without what the server writes."""
        kind = KINDS[group_kind].resource
        wanted = (kind.api_version, kind.kind, key.namespace or "default", key.name)
        for document in self.change.documents:
            if identify(document) == wanted:
                copy: Document = without_nulls(document)
                return copy
        subject = self.final.objects[group_kind][key]
        document = getattr(subject, "document", None) or msgspec.to_builtins(subject)
        meta = {name: value for name, value in document["metadata"].items() if name in _META}
        rest = {name: value for name, value in document.items() if name not in _WRITTEN_BY_SERVER}
        return {**rest, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}

    @cached_property
    def minor(self) -> int | None:
        """The newest minor version of a kubelet: the API server is at least as new. None where nobody says."""
        versions = (_VERSION.fullmatch(node.status.node_info.kubelet_version) for node in self.before.all(Node))
        return max((int(match[1]) for match in versions if match), default=None)


def pod_of(workload: StuckWorkload) -> Pod:
    """A pod as its template makes it, without what admission adds."""
    meta = ObjectMeta(
        name=f"{workload.key.name}-new", namespace=workload.key.namespace, labels=workload.template.metadata.labels
    )
    return Pod(metadata=meta, spec=workload.template.spec)
