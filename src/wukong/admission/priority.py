"""A pod's priority and preemption policy, read from its PriorityClass."""

from __future__ import annotations

from wukong.admission.problem_text import describe_problem
from wukong.api.core import Pod, PriorityClass
from wukong.errors import InputError, nearest

BUILT_IN_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
DEFAULT_POLICY = "PreemptLowerPriority"


def set_priority(pod: Pod, classes: list[PriorityClass]) -> None:
    """In place: from the named class, or the global default. Raises InputError where the pod contradicts its class."""
    chosen = _priority_class(pod.spec.priority_class_name, classes)
    policy = chosen.preemption_policy or DEFAULT_POLICY
    problems = []
    if pod.spec.priority not in (None, chosen.value):
        fix = "Leave it out, or name another priorityClassName."
        problems.append(
            describe_problem("$.spec.priority", f"what the class says, {chosen.value}", pod.spec.priority, fix)
        )
    if pod.spec.preemption_policy not in (None, policy):
        fix = "Leave it out, or name a PriorityClass that has this policy."
        expected = f"what the class says, {policy}"
        problems.append(describe_problem("$.spec.preemptionPolicy", expected, pod.spec.preemption_policy, fix))
    if problems:
        raise InputError(*problems)
    pod.spec.priority_class_name = chosen.metadata.name
    pod.spec.priority, pod.spec.preemption_policy = chosen.value, policy


def _priority_class(name: str, classes: list[PriorityClass]) -> PriorityClass:
    if not name:
        defaults = [entry for entry in classes if entry.global_default]
        return min(defaults, key=lambda entry: entry.value, default=PriorityClass())
    class_by_name = {entry.metadata.name: entry for entry in classes}
    if name in class_by_name:
        return class_by_name[name]
    if name in BUILT_IN_CLASSES:
        built_in = PriorityClass(value=BUILT_IN_CLASSES[name])
        built_in.metadata.name = name
        return built_in
    path = "$.spec.priorityClassName"
    if not classes:
        fix = "Add them to the snapshot (kubectl get priorityclasses -o yaml), or leave the name out."
        raise InputError(f'{path}: "{name}" is unknown, for the snapshot has no PriorityClasses. {fix}')
    names = sorted({*class_by_name, *BUILT_IN_CLASSES})
    raise InputError(
        describe_problem(
            path, "a PriorityClass of the snapshot", name, f"Use {', '.join(names)}.{nearest(name, names)}"
        )
    )
