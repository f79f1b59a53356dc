"""A pod as it shall be created where a policy holds for it: what its author wrote, and what the policy adds. Pure.

What the author wrote stays to the letter. Required node terms are alternatives, so a required rule of ours is ANDed
into every one of them; wishes, pod (anti-)affinity, tolerations and spread are appended. What is there already is not
added again, so a second call on its own output changes nothing, also where another webhook changed the pod in between.
What the author wrote and what is added are checked as the API server would, each by itself, for no check of it is about
both: where the pod is not sure to be accepted, it stays as it was.
Called by whoever admits pods. Never raises for what a pod or a policy says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from wukong.admission.pod_validation import find_pod_problems
from wukong.api.core import Pod, PriorityClass
from wukong.api.decode import readable
from wukong.api.documents import without_nulls
from wukong.api.meta import controller_of
from wukong.placement.compile import Plan
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.node_terms import cross_terms
from wukong.placement.pods.mark import MARK, Mark, format_mark, is_of_policy, read_mark
from wukong.placement.pods.priority import CRITICAL_PRIORITY
from wukong.placement.pods.rules import AddedRules, PodRules, build_added_rules, compile_pod_rules
from wukong.placement.vm.affinity import PREFERRED, REQUIRED
from wukong.ports import Document

# By the kind of a pod's controller: the labels that tell its version, the first that the pod has. Argo's ReplicaSets
# have a label of their own.
VERSION_KEYS: dict[str, tuple[str, ...]] = {
    "ReplicaSet": ("rollouts-pod-template-hash", "pod-template-hash"),
    "StatefulSet": ("controller-revision-hash",),
    "DaemonSet": ("controller-revision-hash",),
}
_LONGEST_REASON = 512
_MOST_KEPT = 4096  # plans of which it is known whether what they add is valid


class PodChange(NamedTuple):
    """The pod as it shall be created, and what of the policy could not be applied, each with its reason.

    Parts of the document are the given one's, others the plan's: whoever wants to change it copies it before.
    `capacity` is what the pod was marked for, if it was changed; "" for any.
    """

    document: Document
    skipped: tuple[str, ...] = ()
    capacity: str = ""


def build_pod(
    pod: Document,
    plan: Plan,
    capacity: str,
    classes: Mapping[str, PriorityClass],
    *,
    critical_priority: int = CRITICAL_PRIORITY,
    is_counted: Callable[[str], bool] = lambda name: False,
) -> PodChange:
    """`capacity` is "spot", "on-demand" or "", as split decided; a mark of the same policy on the pod counts instead.

    `classes` are the PriorityClasses that exist, by name; `is_counted` says of one whether a ResourceQuota counts its
    pods, and so might refuse this one. The document given is never changed, and is given back where
    nothing is to be done.
    """
    if plan.spec is None:
        return PodChange(pod)
    subject = _read_pod(pod)
    if isinstance(subject, str):
        return PodChange(pod, (f"the pod cannot be read: {subject}",))
    if subject.spec.node_name:
        return PodChange(pod, (f"the pod names its node, {subject.spec.node_name}",))
    builder = _PodBuilder(pod, subject, plan, classes, is_counted)
    document = builder.build(capacity, critical_priority)
    if document is pod:
        return PodChange(pod, tuple(builder.skipped))
    problem = _find_problem(subject) or builder.find_problem()
    if problem:
        return PodChange(pod, (f"the pod would be refused: {problem}",))
    return PodChange(document, tuple(builder.skipped), builder.capacity)


def find_pod_problem(pod: Document) -> str:
    """Why a pod cannot be read, or would be refused as its author wrote it; "" for one that is in order."""
    subject = _read_pod(pod)
    return subject if isinstance(subject, str) else _find_problem(subject)


class _PodBuilder:
    """One call: the pod, and what was skipped."""

    def __init__(
        self,
        pod: Document,
        subject: Pod,
        plan: Plan,
        classes: Mapping[str, PriorityClass],
        is_counted: Callable[[str], bool],
    ) -> None:
        self.pod, self.subject, self.plan, self.classes, self._is_counted = pod, subject, plan, classes, is_counted
        self.rules = compile_pod_rules(plan)
        self.skipped: list[str] = []
        self.capacity = ""
        self._controller = controller_of(subject.metadata)
        self._added = AddedRules(plan)

    def build(self, capacity: str, critical_priority: int) -> Document:
        plan = self.plan
        mark = read_mark(self.subject.metadata.annotations)
        if mark is not None and is_of_policy(mark, plan):
            capacity = mark.capacity
        spec = self._set_priority(self.pod["spec"])
        version_key = self._find_version_key()
        if self._controller is not None and self._controller.kind == "DaemonSet":
            capacity, self._added = "", AddedRules(plan, version_key, has_nodes=False)
            if self.rules.required or plan.strategy or plan.split is not None:
                self.skipped.append("nodes and capacity: a DaemonSet's pod goes to its node")
        else:
            strategy = _strategy_of(plan, self._priority_of(spec), critical_priority)
            self._added = AddedRules(plan, version_key, capacity, strategy)
        spec = self._add_rules(spec, build_added_rules(self._added))
        if spec is self.pod["spec"] and not capacity:
            return self.pod
        self.capacity = capacity
        return _add_mark({**self.pod, "spec": spec}, self.pod, Mark(plan.name, plan.generation, capacity))

    def find_problem(self) -> str:
        """The first thing for which the API server would refuse what is added, to any pod; "" if there is none."""
        return _find_problem_of(self._added)

    def _add_rules(self, spec: Document, rules: PodRules) -> Document:
        affinity: Document = spec.get("affinity") or {}
        nodes: Document = affinity.get("nodeAffinity") or {}
        near, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        changes = {
            "nodeAffinity": (nodes, _append(self._require_nodes(nodes, rules), PREFERRED, rules.preferred)),
            "podAffinity": (near, _append_terms(near, rules.pod_affinity)),
            "podAntiAffinity": (apart, _append_terms(apart, rules.pod_anti_affinity)),
        }
        if not self._added.version_key and self.plan.spec is not None and self.plan.spec.version_anti_affinity:
            self.skipped.append("versionAntiAffinity: the pod has no label of its controller that tells its version")
        changed = {name: after for name, (before, after) in changes.items() if after is not before}
        spec = {**spec, "affinity": {**affinity, **changed}} if changed else spec
        return self._add_constraints(_append(spec, "tolerations", rules.tolerations), rules.constraints)

    def _require_nodes(self, nodes: Document, rules: PodRules) -> Document:
        """The cross product of the author's terms with ours, rule by rule; one that makes too many is skipped."""
        before: Sequence[Document] = (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
        if nodes.get(REQUIRED) is not None and not before:
            return nodes  # the API server refuses it, and shall
        terms = before
        for choice in rules.required:
            crossed = cross_terms(terms, choice.alternatives)
            if len(crossed) > max(MOST_NODE_TERMS, len(terms)):
                self.skipped.append(f"{choice.name}: {len(crossed)} node terms, more than {MOST_NODE_TERMS}")
            elif crossed != terms:
                terms = crossed
        if terms is before:
            return nodes
        return {**nodes, REQUIRED: {**(nodes.get(REQUIRED) or {}), "nodeSelectorTerms": terms}}

    def _find_version_key(self) -> str:
        """The label that tells the pod's version, where the policy asks for versions apart; "" where none does."""
        if self.plan.spec is None or self.plan.spec.version_anti_affinity is None:
            return ""
        labels = self.subject.metadata.labels
        keys = VERSION_KEYS.get(self._controller.kind, ()) if self._controller is not None else ()
        return next((key for key in keys if key in labels), "")

    # ---- the rest

    def _add_constraints(self, spec: Document, constraints: Sequence[Document]) -> Document:
        """Two of the same topologyKey and whenUnsatisfiable are refused: the author's stays."""
        if not constraints:
            return spec
        present = spec.get("topologySpreadConstraints") or []
        taken = {(entry.get("topologyKey"), entry.get("whenUnsatisfiable")) for entry in present}
        added = []
        for constraint in constraints:
            kind = constraint["topologyKey"], constraint["whenUnsatisfiable"]
            if kind not in taken:
                added.append(constraint)
            elif constraint not in present:
                self.skipped.append(f"topologySpreadConstraints: the pod has one of its own for {', '.join(kind)}")
        return _append(spec, "topologySpreadConstraints", added)

    def _set_priority(self, spec: Document) -> Document:
        """Name the class, and remove what the API server has filled in for another: it would contradict."""
        wanted, present = self.rules.priority_class, self.subject.spec.priority_class_name
        if not wanted or present == wanted:
            return spec
        is_default = present in self.classes and self.classes[present].global_default
        if present and not is_default:
            self.skipped.append("priority: the pod names a PriorityClass of its own")
            return spec
        if wanted not in self.classes:
            self.skipped.append(f"priority: there is no PriorityClass {wanted}")
            return spec
        if self._is_counted(wanted):
            self.skipped.append(f"priority: a ResourceQuota of the namespace counts pods of PriorityClass {wanted}")
            return spec
        left = {name: value for name, value in spec.items() if name not in ("priority", "preemptionPolicy")}
        return {**left, "priorityClassName": wanted}

    def _priority_of(self, spec: Document) -> int:
        """The priority that the pod will have."""
        name = str(spec.get("priorityClassName") or "")
        return self.classes[name].value if name in self.classes else self.subject.spec.priority or 0


def _strategy_of(plan: Plan, priority: int, critical_priority: int) -> str:
    """The plan's strategy; critical pods go on-demand first, unless their policy leaves no choice. As the extender."""
    is_critical = (priority if plan.priority is None else plan.priority) >= critical_priority
    return "on-demand-first" if is_critical and not plan.strategy.endswith("-only") else plan.strategy


def _append(document: Document, field: str, entries: Sequence[Document]) -> Document:
    """The document with these at the end of a list of it, but for those that are in the list: the same if all are."""
    if not entries:
        return document
    present = document.get(field)
    if not present:
        return {**document, field: list(entries)}
    added = [entry for entry in entries if entry not in present]
    return {**document, field: [*present, *added]} if added else document


def _append_terms(affinity: Document, terms: Document) -> Document:
    """podAffinity or podAntiAffinity with these required and preferred terms as well."""
    for field, entries in terms.items():
        affinity = _append(affinity, field, entries)
    return affinity


def _add_mark(document: Document, pod: Document, mark: Mark) -> Document:
    """The document with this mark; the pod itself where it differs in nothing."""
    metadata = pod.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    text = format_mark(mark)
    if annotations.get(MARK) == text:
        return pod if document["spec"] is pod["spec"] else document
    return {**document, "metadata": {**metadata, "annotations": {**annotations, MARK: text}}}


def _read_pod(pod: Document) -> Pod | str:
    """The pod, or why it cannot be read."""
    if not isinstance(pod.get("spec"), dict):
        return "it has no spec"
    try:
        try:
            return msgspec.convert(pod, Pod)
        except msgspec.ValidationError:  # Go writes null where a list or map is empty; only then pay for a copy
            return msgspec.convert(without_nulls(pod), Pod)
    except msgspec.ValidationError as error:
        return readable(error)[:_LONGEST_REASON]
    except RecursionError:
        return "it is nested too deeply"


@lru_cache(maxsize=_MOST_KEPT)
def _find_problem_of(added: AddedRules) -> str:
    """The first thing for which the API server would refuse a pod that has what is added, and nothing else."""
    blank: Document = {"spec": {"containers": [{"name": "main", "image": "main"}]}}
    builder = _PodBuilder(blank, Pod(), added.plan, {}, lambda name: False)
    subject = _read_pod({"spec": builder._add_rules(blank["spec"], build_added_rules(added))})
    if isinstance(subject, str):
        return subject
    return _find_problem(subject)


def _find_problem(subject: Pod) -> str:
    """The first thing for which the API server would refuse it; "" if there is none."""
    return next(iter(find_pod_problems(subject)), "")[:_LONGEST_REASON]
