"""What is wrong with a Wukong, each with its path: what the API server cannot say, or an older CRD let through. Pure.

Called by the `vm` controller, which builds nothing of a Wukong that has a problem and says so in its condition
Accepted, and by `wukong lint`.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.admission.affinity_validation import find_label_problems
from wukong.admission.problem_text import describe_problem
from wukong.api.documents import path_of
from wukong.api.kubevirt import KUBEVIRT_GROUP
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.errors import InputError
from wukong.placement.compile import find_scheduling_problems
from wukong.placement.rule import Rules
from wukong.placement.vm.build import build_own_part
from wukong.placement.vm.merge import find_conflicts
from wukong.placement.vm.node_affinity import MOST_TERMS, count_terms
from wukong.placement.vm.settings import VmSettings

_DEFAULTS = VmSettings()


def find_wukong_problems(wukong: Wukong, rules: Rules, settings: VmSettings = _DEFAULTS) -> list[str]:
    """Every problem; [] means that its virtual machines can be built."""
    return list(_find_field_problems(wukong, rules)) or list(_find_built_problems(wukong, settings))


def _find_field_problems(wukong: Wukong, rules: Rules) -> Iterator[str]:
    spec = wukong.spec
    yield from find_label_problems(spec.labels, "$.spec.labels")
    for key in spec.labels:
        if key.split("/")[0] == KUBEVIRT_GROUP or key == NAME_LABEL:
            yield describe_problem(path_of("$.spec.labels", key), "a label of your own", key, "Remove it.")
    yield from find_scheduling_problems(spec.scheduling, rules, "$.spec.scheduling")


def _find_built_problems(wukong: Wukong, settings: VmSettings) -> Iterator[str]:
    """What shows only when the parts are put together. The parts have no problems of their own here."""
    try:
        terms = count_terms(wukong) if settings.resource_affinity == "labels" else 0
    except InputError as error:
        yield from error.at("$.spec.scheduling.resourceAffinity").problems
        return
    if terms > MOST_TERMS:
        yield (
            f"$.spec.scheduling.resourceAffinity.requiredResources: expected at most {MOST_TERMS} required "
            f"node-affinity terms, got {terms}: every alternative of nodeAffinity.required counts twice for every resource. "
            "Ask for fewer resources or alternatives, or let the extender judge them (--resource-affinity extender)."
        )
        return
    yield from find_conflicts(build_own_part(wukong, settings), wukong.spec.vm_template, "$.spec.vmTemplate")
