"""What is wrong with a Wukong, each with its path, what was expected, and the fix. Pure.

Called by the `vm` controller, which builds nothing of a Wukong that has a problem and says so in its condition
Accepted, and by `wukong lint`. Everything is looked at here, also what the CRD refuses: an older one may have let it
through, and files that are linted have met none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.admission.affinity_validation import find_label_problems
from wukong.admission.pod_validation import find_spread_problems, find_toleration_problems
from wukong.admission.problem_text import describe_problem
from wukong.api.placement import POLICY_BYTES, is_deeper
from wukong.api.policy_parts import HIGHEST_PRIORITY
from wukong.api.vm import VmScheduling, Wukong
from wukong.placement.affinity_problems import find_node_affinity_problems, find_pod_affinity_problems
from wukong.placement.compile import find_scheduling_problems
from wukong.placement.limits import find_scheduling_size_problems
from wukong.placement.rule import Rules
from wukong.placement.vm.build import build_own_part
from wukong.placement.vm.machine_problems import find_machine_problems
from wukong.placement.vm.merge import find_conflicts
from wukong.placement.vm.node_affinity import MOST_TERMS, count_terms
from wukong.placement.vm.settings import VmSettings
from wukong.placement.vm.template_problems import find_template_problems

MOST_LEVELS = 32  # of what is anybody's own: vmTemplate and the probes
_DEFAULTS = VmSettings()


def find_wukong_problems(wukong: Wukong, rules: Rules, settings: VmSettings = _DEFAULTS) -> list[str]:
    """Every problem; [] means that its virtual machines can be built. What is too large is not looked at further."""
    return (
        list(_find_size_problems(wukong))
        or list(_find_field_problems(wukong, rules))
        or list(_find_built_problems(wukong, settings))
    )


def _find_size_problems(wukong: Wukong) -> Iterator[str]:
    free_fields: tuple[tuple[str, Any], ...] = (
        ("vmTemplate", wukong.spec.vm_template),
        ("readinessProbe", wukong.spec.readiness_probe or {}),
        ("livenessProbe", wukong.spec.liveness_probe or {}),
    )
    for name, value in free_fields:
        if is_deeper(value, MOST_LEVELS):
            yield f"$.spec.{name}: expected at most {MOST_LEVELS} levels, got more. Make it simpler."
            return
    size = len(msgspec.json.encode(wukong.spec))
    if size > POLICY_BYTES:
        yield f"$.spec: expected at most {POLICY_BYTES:,} bytes, got {size:,}. Make it shorter."
    yield from find_scheduling_size_problems(wukong.spec.scheduling)


def _find_field_problems(wukong: Wukong, rules: Rules) -> Iterator[str]:
    yield from find_machine_problems(wukong)
    if wukong.spec.scheduling is not None:
        yield from find_scheduling_problems(wukong.spec.scheduling, rules, "$.spec.scheduling")
        yield from _find_placement_problems(wukong.spec.scheduling, "$.spec.scheduling")
    yield from find_template_problems(wukong.spec.vm_template, "$.spec.vmTemplate")


def _find_placement_problems(scheduling: VmScheduling, path: str) -> Iterator[str]:
    yield from find_pod_affinity_problems(scheduling.pod_affinity, f"{path}.podAffinity")
    yield from find_pod_affinity_problems(scheduling.pod_anti_affinity, f"{path}.podAntiAffinity")
    yield from find_node_affinity_problems(scheduling.node_affinity, f"{path}.nodeAffinity")
    yield from find_label_problems(scheduling.node_selector, f"{path}.nodeSelector")
    yield from find_toleration_problems(scheduling.tolerations, f"{path}.tolerations")
    yield from find_spread_problems(scheduling.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    policy = scheduling.scheduling_policy
    if policy is not None and (policy.priority or 0) > HIGHEST_PRIORITY:
        yield describe_problem(
            f"{path}.schedulingPolicy.priority",
            f"at most {HIGHEST_PRIORITY:,}, the highest that is not the system's",
            policy.priority,
            "Lower it.",
        )


def _find_built_problems(wukong: Wukong, settings: VmSettings) -> Iterator[str]:
    """What shows only when the parts are put together. The parts have no problems of their own here."""
    terms = count_terms(wukong) if settings.resource_affinity == "labels" else 0
    if terms > MOST_TERMS:
        yield (
            f"$.spec.scheduling.resourceAffinity.requiredResources: expected at most {MOST_TERMS} required "
            f"node-affinity terms, got {terms}: every alternative of nodeAffinity.required counts twice for every "
            "resource. Ask for fewer resources or alternatives, or use the extender (--resource-affinity extender)."
        )
        return
    yield from find_conflicts(build_own_part(wukong, settings), wukong.spec.vm_template, "$.spec.vmTemplate")
