"""What warnings read: the cluster with the change made, what the change writes, and the workloads it touches.

Built by whoever makes a plan, from a fork on which the change was applied and nobody reacted yet. Everything here is
read, nothing is changed or played.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from wukong.api.apps import DaemonSet, Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet, Workload
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Affinity, Namespace, Node, NodeSelector, Pod, PodAffinityTerm, PodSpec, Toleration
from wukong.api.kinds import KINDS
from wukong.api.meta import LabelSelector, ObjectMeta, controller_of
from wukong.api.resources import Key, group_of
from wukong.ports import Document, PatchBody
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.pod_affinity import Term, compile_pod_term
from wukong.semantics.selectors import compile_selector, selects
from wukong.semantics.tolerations import tolerates_node
from wukong.state import State

_WORKLOADS: tuple[type[Workload], ...] = (Deployment, StatefulSet, DaemonSet, ReplicaSet)
_encode = msgspec.json.Encoder(order="sorted").encode


class WrittenObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object that the change writes: by applying a document, or by a patch."""

    group_kind: str
    key: Key
    applied: Document | None = None  # as it was written, before any default
    patch: PatchBody | None = None
    before: Document | None = None  # as the cluster had it; None: it is new
    after: Document | None = None  # as the cluster has it then; None: it was deleted

    @property
    def subject(self) -> str:
        return f"{self.group_kind.partition('.')[0]} {self.key}"


class TouchedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that the change writes, or whose pods it drives away. `pod` is what its template makes."""

    kind: str
    key: Key
    workload: Workload
    pod: Pod

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def replicas(self) -> int | None:
        """None for a DaemonSet, which has one for each node."""
        if self.kind == "DaemonSet":
            return None
        return 1 if self.workload.spec.replicas is None else self.workload.spec.replicas

    @property
    def affinity(self) -> Affinity:
        return self.pod.spec.affinity or Affinity()

    def list_pod_terms(self, side: str) -> Iterator[tuple[str, PodAffinityTerm]]:
        """Required and preferred terms of podAffinity or podAntiAffinity, with their paths."""
        for is_required in (True, False):
            for index, term in enumerate(self._terms_of(side, is_required=is_required)):
                yield term_path(side, index, is_required=is_required), term

    def list_required_terms(self, side: str) -> Iterator[tuple[str, PodAffinityTerm]]:
        for index, term in enumerate(self._terms_of(side, is_required=True)):
            yield term_path(side, index, is_required=True), term

    def _terms_of(self, side: str, *, is_required: bool) -> list[PodAffinityTerm]:
        rules = self.affinity.pod_affinity if side == "podAffinity" else self.affinity.pod_anti_affinity
        if rules is None:
            return []
        return rules.required if is_required else [weighted.pod_affinity_term for weighted in rules.preferred]


def term_path(side: str, index: int, *, is_required: bool) -> str:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if not is_required:
        name = "preferredDuringSchedulingIgnoredDuringExecution"
    return f"$.spec.template.spec.affinity.{side}.{name}[{index}]"


class Situation:
    """The cluster (`state`) in which everything is written and nobody has reacted, and what was written.

    `drained_nodes` are left by their pods: the workloads of those are touched, too.
    """

    def __init__(
        self, state: State, written: tuple[WrittenObject, ...] = (), drained_nodes: tuple[str, ...] = ()
    ) -> None:
        self.state, self.written, self.drained_nodes = state, written, drained_nodes
        self._possible_nodes: dict[bytes, list[Node]] = {}

    @cached_property
    def workloads(self) -> list[TouchedWorkload]:
        """What the change writes first, then what a drain moves, each once."""
        touched: dict[tuple[str, Key], Workload] = {}
        for entry in self.written:
            subject = self.state.objects.get(entry.group_kind, {}).get(entry.key)
            if isinstance(subject, _WORKLOADS):
                touched[entry.group_kind, entry.key] = subject
        for node in self.drained_nodes:
            for pod in self.state.pods_on(node):
                if (workload := self._workload_of(pod)) is not None:
                    touched.setdefault((KINDS.group_kind_of(type(workload)), _key_of(workload)), workload)
        return [_touch(workload) for workload in touched.values()]

    def _workload_of(self, pod: Pod) -> Workload | None:
        """The workload that a pod belongs to in the end; a DaemonSet's pods stay in a drain."""
        reference, namespace = controller_of(pod.metadata), pod.metadata.namespace
        owner = self.state.owner(namespace, reference) if reference is not None else None
        if isinstance(owner, ReplicaSet) and (above := controller_of(owner.metadata)) is not None:
            owner = self.state.owner(namespace, above) or owner
        return owner if isinstance(owner, _WORKLOADS) and not isinstance(owner, DaemonSet) else None

    @cached_property
    def all_workloads(self) -> list[TouchedWorkload]:
        """Every workload of the cluster; of ReplicaSets those that nobody controls."""
        subjects = [subject for struct in _WORKLOADS for subject in self.state.all(struct)]
        return [
            _touch(subject)
            for subject in subjects
            if not isinstance(subject, ReplicaSet) or controller_of(subject.metadata) is None
        ]

    @cached_property
    def autoscalers(self) -> dict[tuple[str, Key], HorizontalPodAutoscaler]:
        """By group and kind, and key, of what they scale."""
        targets: dict[tuple[str, Key], HorizontalPodAutoscaler] = {}
        for autoscaler in self.state.all(HorizontalPodAutoscaler):
            target, namespace = autoscaler.spec.scale_target_ref, autoscaler.metadata.namespace
            group = group_of(target.api_version)
            group_kind = f"{target.kind}.{group}" if group else target.kind
            targets[group_kind, Key(namespace, target.name)] = autoscaler
        return targets

    def autoscaler_of(self, group_kind: str, key: Key) -> HorizontalPodAutoscaler | None:
        return self.autoscalers.get((group_kind, key))

    def budgets_of(self, workload: TouchedWorkload) -> list[PodDisruptionBudget]:
        """The budgets that cover the pods of a workload, by name."""
        return [budget for budget in self._budgets_in(workload.key.namespace) if covers(budget, workload)]

    @property
    def touched_budgets(self) -> list[PodDisruptionBudget]:
        """The budgets that the change writes, and those that cover what it touches."""
        budgets: dict[Key, PodDisruptionBudget] = {}
        for entry in self.written:
            budget = self.state.get(PodDisruptionBudget, entry.key)
            if budget is not None and entry.group_kind == KINDS.group_kind_of(PodDisruptionBudget):
                budgets[entry.key] = budget
        for workload in self.workloads:
            budgets |= {_key_of(budget): budget for budget in self.budgets_of(workload)}
        return list(budgets.values())

    def _budgets_in(self, namespace: str) -> list[PodDisruptionBudget]:
        return [budget for budget in self.state.all(PodDisruptionBudget) if budget.metadata.namespace == namespace]

    def labels_of_namespace(self, name: str) -> dict[str, str]:
        namespace = self.state.get(Namespace, Key("", name))
        return namespace.metadata.labels if namespace is not None else {}

    def selects_own_pods(self, workload: TouchedWorkload, term: PodAffinityTerm) -> bool:
        """Whether a term of the workload's template selects the pods that the template makes."""
        return self._selects(compile_pod_term(term, workload.key.namespace), workload)

    def _selects(self, term: Term, workload: TouchedWorkload) -> bool:
        namespace = workload.key.namespace
        return term.selects(namespace, workload.pod.metadata.labels, self.labels_of_namespace(namespace))

    def selects_anybody(self, term: Term) -> bool:
        """Whether a pod that is there, or one that a workload would make, is selected."""
        for namespace, classes in self.state.pods.classes.items():
            labels = self.labels_of_namespace(namespace)
            if any(term.selects(namespace, dict(label_class), labels) for label_class in classes):
                return True
        return any(self._selects(term, workload) for workload in self.all_workloads)

    def bound_labels(self, term: Term, topology_key: str) -> set[str]:
        """The domains, as values of the label, in which pods that a term selects are."""
        names = {
            pod.spec.node_name
            for namespace, classes in self.state.pods.classes.items()
            for label_class in classes
            if term.selects(namespace, dict(label_class), self.labels_of_namespace(namespace))
            for key in self.state.pods.by_class[namespace, label_class]
            if (pod := self.state.get(Pod, key)) is not None and not pod.is_finished
        }
        nodes = (self.state.get(Node, Key("", name)) for name in names)
        return {
            node.metadata.labels[topology_key]
            for node in nodes
            if node is not None and topology_key in node.metadata.labels
        }

    def selects_in_namespace(self, selector: LabelSelector | None, namespace: str) -> bool:
        """The same for a selector of labels that looks at one namespace."""
        compiled = compile_selector(selector)
        classes = self.state.pods.classes.get(namespace, ())
        if any(selects(compiled, dict(label_class)) for label_class in classes):
            return True
        return any(
            workload.key.namespace == namespace and selects(compiled, workload.pod.metadata.labels)
            for workload in self.all_workloads
        )

    def possible_nodes(self, workload: TouchedWorkload) -> list[Node]:
        """The nodes that labels, taints and cordons leave to its pods, whatever is free there."""
        spec = workload.pod.spec
        required = workload.affinity.node_affinity.required if workload.affinity.node_affinity is not None else None
        question = _encode(_NodeQuestion(spec.node_selector, spec.tolerations, required))
        if question not in self._possible_nodes:
            self._possible_nodes[question] = [
                node
                for node in self.state.all(Node)
                if not node.spec.unschedulable
                and node.metadata.name not in self.drained_nodes
                and allows_node(workload.pod, node)
                and tolerates_node(workload.pod, node)
            ]
        return self._possible_nodes[question]


class _NodeQuestion(msgspec.Struct):
    """What of a pod decides which nodes are possible: workloads that say the same share the answer."""

    node_selector: dict[str, str]
    tolerations: list[Toleration]
    required: NodeSelector | None


def covers(budget: PodDisruptionBudget, workload: TouchedWorkload) -> bool:
    is_near = budget.metadata.namespace == workload.key.namespace
    return is_near and selects(compile_selector(budget.spec.selector), workload.pod.metadata.labels)


def _touch(workload: Workload) -> TouchedWorkload:
    template, key = workload.spec.template, _key_of(workload)
    labels = template.metadata.labels if template is not None else {}
    spec = template.spec if template is not None else PodSpec()
    pod = Pod(metadata=ObjectMeta(name=key.name, namespace=key.namespace, labels=labels), spec=spec)
    kind = KINDS.group_kind_of(type(workload)).partition(".")[0]
    return TouchedWorkload(kind=kind, key=key, workload=workload, pod=pod)


def _key_of(subject: Workload | PodDisruptionBudget) -> Key:
    return Key(subject.metadata.namespace, subject.metadata.name)
