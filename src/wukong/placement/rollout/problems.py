"""What is wrong with a Rollout, each with its path, what was expected, and the fix. Pure.

Called by controllers/rollout, which changes nothing of what runs while there is a problem and says so in the condition
Accepted, by the admission webhook, and by the embedded API server. Everything is looked at here, also what the CRD
refuses: an older one may have let it through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.api.core import PodTemplateSpec
from wukong.api.placement import is_deeper
from wukong.api.rollout import (
    DEADLOCK_CHOICES,
    HASH,
    MOST_REPLICAS,
    MOST_SECONDS,
    MOST_STEPS,
    BlueGreen,
    Canary,
    CanaryStep,
    Rollout,
    VersionAntiAffinity,
)
from wukong.placement.percent import parse_share
from wukong.placement.rollout.canary_steps import parse_duration
from wukong.placement.rollout.version_rule import PREFERRED, REQUIRED
from wukong.semantics.label_syntax import is_label_key
from wukong.semantics.selectors import compile_selector, selects

MOST_LEVELS = 32  # of a template


def find_rollout_problems(rollout: Rollout) -> list[str]:
    """Every problem; [] means that its versions can be made."""
    if is_deeper(rollout.spec.template, MOST_LEVELS):
        return [f"$.spec.template: expected at most {MOST_LEVELS} levels, got more. Make it simpler."]
    return [
        *_find_number_problems(rollout),
        *_find_template_problems(rollout),
        *_find_strategy_problems(rollout),
    ]


def _find_number_problems(rollout: Rollout) -> Iterator[str]:
    spec = rollout.spec
    numbers = (
        ("replicas", spec.replicas, MOST_REPLICAS),
        ("minReadySeconds", spec.min_ready_seconds, MOST_SECONDS),
        ("progressDeadlineSeconds", spec.progress_deadline_seconds, MOST_SECONDS),
        ("revisionHistoryLimit", spec.revision_history_limit, MOST_REPLICAS),
    )
    for name, number, most in numbers:
        yield from _find_range_problem(f"$.spec.{name}", number, most)


def _find_range_problem(path: str, number: int | None, most: int) -> Iterator[str]:
    if number is not None and not 0 <= number <= most:
        yield f"{path}: expected a number from 0 to {most:,}, got {number}."


def _find_template_problems(rollout: Rollout) -> Iterator[str]:
    selector = compile_selector(rollout.spec.selector)
    if not selector:
        yield "$.spec.selector: expected labels that select this Rollout's pods, such as matchLabels: {app: web}."
    try:
        template = msgspec.convert(rollout.spec.template, PodTemplateSpec)
    except msgspec.ValidationError as error:
        yield f"$.spec.template: expected a pod template: {error}."
        return
    if not template.spec.containers:
        yield "$.spec.template.spec.containers: expected at least one container, got none."
    if HASH in template.metadata.labels:
        yield f"$.spec.template.metadata.labels: expected no label {HASH}: it is set for you. Remove it."
    if selector and not selects(selector, template.metadata.labels):
        yield "$.spec.template.metadata.labels: expected labels that $.spec.selector selects. Add them."
    policy: Any = (rollout.spec.template.get("spec") or {}).get("restartPolicy")
    if policy not in (None, "", "Always"):
        yield f"$.spec.template.spec.restartPolicy: expected Always, got {str(policy)[:32]!r}. Leave it out."


def _find_strategy_problems(rollout: Rollout) -> Iterator[str]:
    strategy = rollout.spec.strategy
    given = [part for part in (strategy.blue_green, strategy.bluegreen, strategy.canary) if part is not None]
    if len(given) != 1:
        yield f"$.spec.strategy: expected exactly one of blueGreen (or bluegreen) and canary, got {len(given)}."
        return
    if strategy.canary is not None:
        yield from _find_canary_problems(strategy.canary)
    for name, part in (("blueGreen", strategy.blue_green), ("bluegreen", strategy.bluegreen)):
        if part is not None:
            yield from _find_blue_green_problems(part, f"$.spec.strategy.{name}")


def _find_blue_green_problems(part: BlueGreen, path: str) -> Iterator[str]:
    if not part.active_service:
        yield f"{path}.activeService: expected the name of the Service that traffic goes through."
    elif part.preview_service == part.active_service:
        yield f"{path}.previewService: expected another Service than activeService, got {part.preview_service!r}."
    yield from _find_range_problem(f"{path}.previewReplicas", part.preview_replicas, MOST_REPLICAS)
    yield from _find_range_problem(f"{path}.autoPromotionSeconds", part.auto_promotion_seconds, MOST_SECONDS)
    yield from _find_range_problem(f"{path}.scaleDownDelaySeconds", part.scale_down_delay_seconds, MOST_SECONDS)
    if part.on_deadlock not in DEADLOCK_CHOICES:
        yield f"{path}.onDeadlock: expected {' or '.join(DEADLOCK_CHOICES)}, got {part.on_deadlock[:32]!r}."
    yield from _find_rule_problems(part.anti_affinity, f"{path}.antiAffinity")


def _find_canary_problems(part: Canary) -> Iterator[str]:
    path = "$.spec.strategy.canary"
    for name, value in (("maxSurge", part.max_surge), ("maxUnavailable", part.max_unavailable)):
        if parse_share(value) is None:
            yield f'{path}.{name}: expected a number of pods, or a share such as "25%", got {str(value)[:32]!r}.'
    if part.canary_service and part.canary_service == part.stable_service:
        yield f"{path}.canaryService: expected another Service than stableService, got {part.canary_service!r}."
    if len(part.steps) > MOST_STEPS:
        yield f"{path}.steps: expected at most {MOST_STEPS} steps, got {len(part.steps)}."
    for index, step in enumerate(part.steps[:MOST_STEPS]):
        yield from _find_step_problems(step, f"{path}.steps[{index}]")
    yield from _find_rule_problems(part.anti_affinity, f"{path}.antiAffinity")


def _find_step_problems(step: CanaryStep, path: str) -> Iterator[str]:
    if sum(value is not None for value in (step.set_weight, step.set_replicas, step.pause)) != 1:
        yield f"{path}: expected exactly one of setWeight, setReplicas and pause."
        return
    if step.set_weight is not None and not 0 <= step.set_weight <= 100:
        yield f"{path}.setWeight: expected a weight from 0 to 100, got {step.set_weight}."
    yield from _find_range_problem(f"{path}.setReplicas", step.set_replicas, MOST_REPLICAS)
    duration = step.pause.duration if step.pause is not None else None
    if duration is not None and parse_duration(duration) is None:
        got = str(duration)[:32]
        yield f"{path}.pause.duration: expected seconds, or a duration such as 90s, 10m or 1h, got {got!r}."


def _find_rule_problems(rule: VersionAntiAffinity | None, path: str) -> Iterator[str]:
    if rule is None:
        return
    if (rule.required is None) == (rule.preferred is None):
        yield f"{path}: expected exactly one of {REQUIRED} and {PREFERRED}."
    elif rule.preferred is not None and not 1 <= rule.preferred.weight <= 100:
        yield f"{path}.{PREFERRED}.weight: expected a weight from 1 to 100, got {rule.preferred.weight}."
    if rule.topology_key and not is_label_key(rule.topology_key):
        yield f"{path}.topologyKey: expected a node label key such as kubernetes.io/hostname."
