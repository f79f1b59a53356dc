"""Selectors that match nothing: a budget that protects nobody, a rule about pods that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import PodAffinityTerm, Service
from wukong.api.meta import LabelSelector
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, TouchedWorkload
from wukong.semantics.pod_affinity import compile_pod_term

CODE = "selector-matches-nothing"
_COMPARE = "Compare the labels with those of the pods."


def find(situation: Situation) -> Iterator[PlanWarning]:
    for entry in situation.written:
        if entry.group_kind == "PodDisruptionBudget.policy":
            yield from _judge_budget(situation, situation.state.get(PodDisruptionBudget, entry.key))
        if entry.group_kind == "Service":
            yield from _judge_service(situation, situation.state.get(Service, entry.key))
    for workload in situation.workloads:
        yield from _judge_terms(situation, workload)
        yield from _judge_spread(situation, workload)


def _judge_budget(situation: Situation, budget: PodDisruptionBudget | None) -> Iterator[PlanWarning]:
    if budget is None or situation.selects_in_namespace(budget.spec.selector, budget.metadata.namespace):
        return
    text = "no pod of its namespace has these labels: it protects nobody."
    subject = f"PodDisruptionBudget {budget.key}"
    yield PlanWarning(code=CODE, subject=subject, path="$.spec.selector", text=text, fix=_COMPARE)


def _judge_service(situation: Situation, service: Service | None) -> Iterator[PlanWarning]:
    if service is None or not service.spec.selector or service.spec.type == "ExternalName":
        return  # whoever leaves the selector out fills its endpoints by hand
    selector = LabelSelector(match_labels=service.spec.selector)
    if not situation.selects_in_namespace(selector, service.metadata.namespace):
        text = "no pod of its namespace has these labels: it has no endpoints."
        subject = f"Service {service.key}"
        yield PlanWarning(code=CODE, subject=subject, path="$.spec.selector", text=text, fix=_COMPARE)


def _judge_terms(situation: Situation, workload: TouchedWorkload) -> Iterator[PlanWarning]:
    for side in ("podAffinity", "podAntiAffinity"):
        for path, term in workload.list_pod_terms(side):
            if situation.selects_anybody(compile_pod_term(term, workload.key.namespace)):
                continue
            is_required = ".required" in path
            if side == "podAntiAffinity":
                effect = "keeps nobody apart"
            else:
                effect = "lets its pods wait for ever" if is_required else "has no effect"
            yield _warn(workload, f"{path}.labelSelector", f"selects no pod of this cluster: it {effect}.")


def _judge_spread(situation: Situation, workload: TouchedWorkload) -> Iterator[PlanWarning]:
    for index, constraint in enumerate(workload.pod.spec.topology_spread_constraints):
        term = PodAffinityTerm(topology_key=constraint.topology_key, label_selector=constraint.label_selector)
        if not situation.selects_own_pods(workload, term):
            path = f"$.spec.template.spec.topologySpreadConstraints[{index}].labelSelector"
            yield _warn(workload, path, "does not select the pods of this template: it does not spread them.")


def _warn(workload: TouchedWorkload, path: str, text: str) -> PlanWarning:
    return PlanWarning(code=CODE, subject=workload.subject, path=path, text=text, fix=_COMPARE)
