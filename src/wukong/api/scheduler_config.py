"""Reads a KubeSchedulerConfiguration into a Profile, for what we model, and refuses the rest by name.

Pure: takes the text, gives the profile. Called by the commands that take --scheduler-config.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec

from wukong.api.core import NodeAffinity, TopologySpreadConstraint
from wukong.api.decode import readable
from wukong.api.documents import load_yaml
from wukong.api.meta import Base
from wukong.api.profile import (
    FILTERS,
    SCORES,
    SYSTEM_DEFAULT_CONSTRAINTS,
    VOLUME_SCORE,
    ExtenderEntry,
    FitArguments,
    Profile,
    ShapePoint,
    Strategy,
    WeightedResource,
    list_scores,
    order_filters,
)
from wukong.api.versions import Version
from wukong.errors import InputError, nearest

# Default plugins that never change a decision we model: they may be switched on or off without effect.
_INERT = frozenset(
    {
        "SchedulingGates",
        "PrioritySort",
        "DynamicResources",
        "DefaultPreemption",
        "DefaultBinder",
        "NodeDeclaredFeatures",
        "GangScheduling",
        "DeferredPodScheduling",
    }
)
_T = TypeVar("_T")
_SCORE_WEIGHTS = {**dict(SCORES), "DynamicResources": 2, "VolumeBinding": 1}
_KNOWN = frozenset(FILTERS) | frozenset(_SCORE_WEIGHTS) | _INERT


class _Strict(Base, forbid_unknown_fields=True):
    """Arguments and profiles: a field we do not know is a setting we would silently ignore, so refuse it."""


class _Plugin(_Strict):
    name: str
    weight: int = 0


class _PluginSet(_Strict):
    enabled: list[_Plugin] = []
    disabled: list[_Plugin] = []


class _Plugins(_Strict):
    multi_point: _PluginSet = msgspec.field(default_factory=_PluginSet)
    filter: _PluginSet = msgspec.field(default_factory=_PluginSet)
    score: _PluginSet = msgspec.field(default_factory=_PluginSet)
    post_filter: _PluginSet = msgspec.field(default_factory=_PluginSet)


class _PluginConfig(_Strict):
    name: str
    args: dict[str, object] = {}


class _SchedulerProfile(_Strict):
    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None  # every node is always considered
    plugins: _Plugins = msgspec.field(default_factory=_Plugins)
    plugin_config: list[_PluginConfig] = []


class _Configuration(Base):
    api_version: str = ""
    kind: str = ""
    profiles: list[_SchedulerProfile] = []
    extenders: list[ExtenderEntry] = []
    percentage_of_nodes_to_score: int = 0


class _RatioParam(_Strict):
    shape: list[ShapePoint] = []


class _ScoringStrategy(_Strict):
    type: Strategy = "LeastAllocated"
    resources: list[WeightedResource] = []
    requested_to_capacity_ratio: _RatioParam | None = None


class _FitArgs(_Strict):
    api_version: str = ""
    kind: str = ""
    scoring_strategy: _ScoringStrategy | None = None
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []


class _BalancedArgs(_Strict):
    api_version: str = ""
    kind: str = ""
    resources: list[WeightedResource] = []


class _InterPodArgs(_Strict):
    api_version: str = ""
    kind: str = ""
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class _SpreadArgs(_Strict):
    api_version: str = ""
    kind: str = ""
    defaulting_type: Literal["System", "List"] = "System"
    default_constraints: list[TopologySpreadConstraint] = []


class _NodeAffinityArgs(_Strict):
    api_version: str = ""
    kind: str = ""
    added_affinity: NodeAffinity | None = None


def read_scheduler_config(data: bytes, version: Version) -> Profile:
    """The profile `default-scheduler` of this configuration, or its only one."""
    configuration = _parse(data)
    return _build_profile(configuration, _choose_profile(configuration.profiles), version)


def read_scheduler_profiles(data: bytes, version: Version) -> dict[str, Profile]:
    """Every profile of this configuration, by schedulerName. As in kube-scheduler, no two have the same name."""
    configuration = _parse(data)
    profiles: dict[str, Profile] = {}
    for number, profile in enumerate(configuration.profiles or [_SchedulerProfile()]):
        if profile.scheduler_name in profiles:
            place = f"$.profiles[{number}].schedulerName"
            raise InputError(f"{place}: expected another name than those before it, got {profile.scheduler_name!r}.")
        profiles[profile.scheduler_name] = _build_profile(configuration, profile, version)
    return profiles


def _build_profile(configuration: _Configuration, profile: _SchedulerProfile, version: Version) -> Profile:
    settings = _apply_switches(profile.plugins, version)
    settings["extenders"] = tuple(configuration.extenders)
    percentage = profile.percentage_of_nodes_to_score
    settings["percentage_of_nodes_to_score"] = (
        configuration.percentage_of_nodes_to_score if percentage is None else percentage
    )
    for entry in profile.plugin_config:
        settings.update(_read_arguments(entry))
    return msgspec.structs.replace(Profile(version=version), **settings)


def _parse(data: bytes) -> _Configuration:
    document = load_yaml(data)
    if not isinstance(document, dict) or document.get("kind") != "KubeSchedulerConfiguration":
        kind = document.get("kind") if isinstance(document, dict) else document
        raise InputError(f"expected kind: KubeSchedulerConfiguration, got {kind!r}.")
    if not str(document.get("apiVersion", "")).startswith("kubescheduler.config.k8s.io/"):
        raise InputError(f"$.apiVersion: expected kubescheduler.config.k8s.io/v1, got {document.get('apiVersion')!r}.")
    configuration = _convert(document, _Configuration, "$")
    for number, extender in enumerate(configuration.extenders):
        if extender.prioritize_verb and extender.weight < 1:
            place = f"$.extenders[{number}].weight"
            raise InputError(f"{place}: expected 1 or more beside prioritizeVerb, got {extender.weight}.")
    return configuration


def _choose_profile(profiles: list[_SchedulerProfile]) -> _SchedulerProfile:
    if not profiles:
        return _SchedulerProfile()
    default_profiles = [profile for profile in profiles if profile.scheduler_name == "default-scheduler"]
    if len(profiles) > 1 and not default_profiles:
        names = ", ".join(profile.scheduler_name for profile in profiles)
        raise InputError(f"$.profiles: none is called default-scheduler among {names}. Keep the one to use.")
    return (default_profiles or profiles)[0]


def _apply_switches(plugins: _Plugins, version: Version) -> dict[str, object]:
    """Which plugins filter, score and preempt once the file's switches are applied, in kube-scheduler's order."""
    for place, entry in _every_plugin(plugins):
        if entry.name != "*" and entry.name not in _KNOWN:
            raise InputError(
                f'$.profiles[].plugins.{place}: plugin "{entry.name}" is not modelled.'
                f"{nearest(entry.name, _KNOWN)} Known plugins: {', '.join(sorted(_KNOWN))}."
            )
    defaults = [*order_filters(FILTERS, version), *(name for name in _SCORE_WEIGHTS if name not in FILTERS)]
    defaults.append("DefaultPreemption")
    multi = _merge([_Plugin(name=name) for name in defaults], plugins.multi_point)
    filters = _expand(multi, plugins.filter, set(FILTERS))
    scorers = {name for name, _ in list_scores(version)} | set(version.zero_scores)
    scores = _expand(multi, plugins.score, scorers)
    post_filters = {
        plugin.name for plugin in _expand(multi, plugins.post_filter, {"DefaultPreemption", "DynamicResources"})
    }
    weights = [(plugin.name, plugin.weight or _default_weight(plugin, multi)) for plugin in scores]
    weights.sort(key=lambda entry: entry[0] == VOLUME_SCORE[0])  # last, as in the default profile
    return {
        "filters": tuple(plugin.name for plugin in filters),
        "scores": tuple((name, weight) for name, weight in weights if name in dict(list_scores(version))),
        "zero_scores": tuple(name for name in version.zero_scores if name in dict(weights)),
        "has_preemption": "DefaultPreemption" in post_filters,
        "has_claims_message": version.claims_message and "DynamicResources" in post_filters,
    }


def _default_weight(plugin: _Plugin, multi: list[_Plugin]) -> int:
    """A plugin that was left as it is keeps its default weight; one enabled anew without a weight gets 1."""
    untouched = any(entry is plugin for entry in multi)
    return _SCORE_WEIGHTS.get(plugin.name, 1) if untouched else 1


def _merge(defaults: list[_Plugin], custom: _PluginSet) -> list[_Plugin]:
    """kube-scheduler's merge of multiPoint: drop the disabled, replace the re-enabled in place, append the rest."""
    disabled = {plugin.name for plugin in custom.disabled}
    re_enabled = {plugin.name: plugin for plugin in custom.enabled}
    still_enabled = [] if "*" in disabled else [plugin for plugin in defaults if plugin.name not in disabled]
    merged = [re_enabled.pop(plugin.name, plugin) for plugin in still_enabled]
    return [*merged, *re_enabled.values()]


def _expand(multi: list[_Plugin], point: _PluginSet, able: set[str]) -> list[_Plugin]:
    """One extension point: explicit overrides first, then what multiPoint brings, then what is only named here."""
    listed = [plugin for plugin in point.enabled if plugin.name in able]
    disabled = {plugin.name for plugin in point.disabled}
    if "*" in disabled:
        return listed
    from_multi = [plugin for plugin in multi if plugin.name in able and plugin.name not in disabled]
    names_from_multi = {plugin.name for plugin in from_multi}
    listed_names = {plugin.name for plugin in listed}
    overrides = [plugin for plugin in listed if plugin.name in names_from_multi]
    rest = [plugin for plugin in listed if plugin.name not in names_from_multi]
    return [*overrides, *(plugin for plugin in from_multi if plugin.name not in listed_names), *rest]


def _every_plugin(plugins: _Plugins) -> Iterable[tuple[str, _Plugin]]:
    for place in ("multi_point", "filter", "score", "post_filter"):
        chosen: _PluginSet = getattr(plugins, place)
        for side in ("enabled", "disabled"):
            for entry in getattr(chosen, side):
                yield f"{place}.{side}", entry


def _read_arguments(entry: _PluginConfig) -> dict[str, object]:
    place = f"$.profiles[].pluginConfig[{entry.name}].args"
    if entry.name == "NodeResourcesFit":
        return {"fit": _read_fit(_convert(entry.args, _FitArgs, place), place)}
    if entry.name == "NodeResourcesBalancedAllocation":
        resources = _convert(entry.args, _BalancedArgs, place).resources
        return {"balanced_resources": tuple(resources)} if resources else {}
    if entry.name == "InterPodAffinity":
        inter_pod = _convert(entry.args, _InterPodArgs, place)
        if not 0 <= inter_pod.hard_pod_affinity_weight <= 100:
            raise InputError(
                f"{place}.hardPodAffinityWeight: expected 0 to 100, got {inter_pod.hard_pod_affinity_weight}."
            )
        return {
            "hard_pod_affinity_weight": inter_pod.hard_pod_affinity_weight,
            "ignore_preferred_terms_of_existing_pods": inter_pod.ignore_preferred_terms_of_existing_pods,
        }
    if entry.name == "PodTopologySpread":
        return _read_spread(_convert(entry.args, _SpreadArgs, place), place)
    if entry.name == "NodeAffinity":
        return {"added_affinity": _convert(entry.args, _NodeAffinityArgs, place).added_affinity}
    known = [
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "InterPodAffinity",
        "PodTopologySpread",
        "NodeAffinity",
    ]
    raise InputError(
        f'$.profiles[].pluginConfig: arguments of "{entry.name}" are not modelled.{nearest(entry.name, known)} '
        f"Modelled: {', '.join(known)}."
    )


def _read_fit(args: _FitArgs, place: str) -> FitArguments:
    ignored = (tuple(args.ignored_resources), tuple(args.ignored_resource_groups))
    strategy = args.scoring_strategy
    if strategy is None:
        return FitArguments(ignored_resources=ignored[0], ignored_resource_groups=ignored[1])
    resources = tuple(strategy.resources) or FitArguments().resources
    for resource in resources:
        if not 1 <= resource.weight <= 100:
            raise InputError(f"{place}.scoringStrategy.resources: weight of {resource.name} must be 1 to 100.")
    shape: tuple[ShapePoint, ...] = ()
    if strategy.type == "RequestedToCapacityRatio":
        shape = _read_shape(
            strategy.requested_to_capacity_ratio, f"{place}.scoringStrategy.requestedToCapacityRatio.shape"
        )
    return FitArguments(strategy.type, resources, shape, *ignored)


def _read_shape(param: _RatioParam | None, place: str) -> tuple[ShapePoint, ...]:
    points = tuple(param.shape) if param else ()
    if not points:
        raise InputError(f"{place}: expected at least one point such as {{utilization: 0, score: 0}}.")
    rising = all(left.utilization < right.utilization for left, right in pairwise(points))
    if not rising or not all(0 <= point.utilization <= 100 and 0 <= point.score <= 10 for point in points):
        raise InputError(f"{place}: utilization must rise within 0–100 and scores lie within 0–10.")
    return points


def _read_spread(args: _SpreadArgs, place: str) -> dict[str, object]:
    if args.defaulting_type == "System":
        if args.default_constraints:
            raise InputError(f"{place}.defaultConstraints: needs defaultingType: List.")
        return {"default_constraints": SYSTEM_DEFAULT_CONSTRAINTS, "has_system_default_constraints": True}
    return {"default_constraints": tuple(args.default_constraints), "has_system_default_constraints": False}


def _convert(value: object, into: type[_T], place: str) -> _T:
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        text = readable(error)
        hint = " This setting is not modelled." if "unknown field" in text else ""
        raise InputError(f"{place}: {text}{hint}") from None
