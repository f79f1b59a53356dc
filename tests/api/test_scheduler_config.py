"""A KubeSchedulerConfiguration becomes a profile, for what we model; the rest is refused by name."""

from __future__ import annotations

import pytest

from wukong.api.profile import FILTERS, SCORES, Profile, count_sampled_nodes, default_profile
from wukong.api.scheduler_config import read_scheduler_config
from wukong.api.versions import VERSIONS, find_version
from wukong.errors import InputError

RATIO = "{scoringStrategy: {type: RequestedToCapacityRatio}}"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def profile(text: str, version: str = "1.35") -> Profile:
    return read_scheduler_config((HEAD + text).encode(), VERSIONS[version])


@pytest.mark.parametrize("version", list(VERSIONS))
def test_an_empty_configuration_is_the_default_profile(version: str) -> None:
    assert profile("", version) == default_profile(VERSIONS[version])


def test_plugins_are_switched_off_and_weighed_anew() -> None:
    profile_read = profile(
        "profiles: [{plugins: {score: {disabled: [{name: ImageLocality}, {name: NodeAffinity}],"
        " enabled: [{name: NodeAffinity, weight: 9}, {name: TaintToleration}]},"
        " filter: {disabled: [{name: NodePorts}]}, postFilter: {disabled: [{name: '*'}]}}}]"
    )
    weights = dict(profile_read.scores)
    assert weights["NodeAffinity"] == 9
    assert weights["TaintToleration"] == 1  # named anew without a weight
    assert "ImageLocality" not in weights
    assert profile_read.filters == tuple(name for name in FILTERS if name != "NodePorts")
    assert not profile_read.has_preemption
    assert not profile_read.has_claims_message


def test_multi_point_switches_every_extension_point() -> None:
    profile_read = profile("profiles: [{plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}}]")
    assert "PodTopologySpread" not in profile_read.filters
    assert "PodTopologySpread" not in dict(profile_read.scores)


def test_everything_off_but_what_is_named() -> None:
    profile_read = profile(
        "profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 4}]}}}]"
    )
    assert profile_read.scores == (("NodeResourcesFit", 4),)
    assert profile_read.zero_scores == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extenders: [{urlPrefix: http://x, gravity: 3}]", "$.extenders[0]: object contains unknown field gravity"),
        ("extenders: [{prioritizeVerb: prioritize}]", "$.extenders[0].weight: expected 1 or more"),
        ("profiles: [{plugins: {score: {enabled: [{name: NodeAfinity}]}}}]", 'Did you mean "NodeAffinity"?'),
        ("profiles: [{plugins: {reserve: {enabled: [{name: VolumeBinding}]}}}]", "not modelled"),
        (
            "profiles: [{pluginConfig: [{name: VolumeBinding, args: {}}]}]",
            'arguments of "VolumeBinding" are not modelled',
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
            "expected 0 to 100",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Most}}}]}]",
            "$.scoringStrategy.type",
        ),
        (f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {RATIO}}}]}}]", "expected at least one point"),
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {futureSetting: 1}}]}]",
            "This setting is not modelled",
        ),
        ("profiles: [{schedulerName: a}, {schedulerName: b}]", "none is called default-scheduler"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        profile(text)
    assert expected in str(caught.value)


def test_extenders_are_read_with_their_verbs_and_weight() -> None:
    (entry,) = profile(
        "extenders: [{urlPrefix: 'https://wukong:8443', filterVerb: filter, prioritizeVerb: prioritize, weight: 5,"
        " enableHTTPS: true, tlsConfig: {caFile: ca.pem}, httpTimeout: 2s, nodeCacheCapable: true, ignorable: true,"
        " managedResources: [{name: example.com/fpga, ignoredByScheduler: true}]}]"
    ).extenders
    assert (entry.url_prefix, entry.filter_verb, entry.preempt_verb) == ("https://wukong:8443", "filter", "")
    assert entry.weight == 5
    assert [resource.name for resource in entry.managed_resources] == ["example.com/fpga"]


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(InputError, match="expected kind: KubeSchedulerConfiguration"):
        read_scheduler_config(b"kind: Pod", VERSIONS["1.35"])


@pytest.mark.parametrize(
    ("text", "minor", "is_exact"),
    [
        ("v1.35.8", "1.35", True),
        ("1.37", "1.37", True),
        ("v1.33.4-eks-1234", "1.33", True),
        ("1.34", "1.34", True),
        ("v1.36.3-gke.1", "1.36", True),
        ("1.29", "1.33", False),
        ("v1.40.0", "1.37", False),
        ("?", "1.35", False),
    ],
)
def test_an_unknown_version_uses_the_nearest_and_says_so(text: str, minor: str, is_exact: bool) -> None:
    version, exact = find_version(text)
    assert (version.minor, exact) == (minor, is_exact)


def test_every_default_plugin_is_in_the_registry() -> None:
    from wukong.engine.plugins.registry import PLUGINS

    assert {*FILTERS, *(name for name, _ in SCORES)} == set(PLUGINS)


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        *((50, 0, 50), (99, 1, 99), (100, 0, 100), (101, 0, 100), (1000, 0, 420), (5000, 0, 500), (6000, 0, 300)),
        *((20_000, 0, 1000), (1000, 100, 1000), (1000, 30, 300), (1000, 1, 100)),
    ],
)
def test_kube_scheduler_samples_a_share_of_many_nodes(nodes: int, percentage: int, expected: int) -> None:
    assert count_sampled_nodes(nodes, percentage) == expected


def test_a_profiles_own_percentage_beats_that_of_the_configuration() -> None:
    text = "percentageOfNodesToScore: 40\nprofiles: [{schedulerName: a}]"
    assert profile(text).percentage_of_nodes_to_score == 40
    own = text.replace("schedulerName: a", "schedulerName: a, percentageOfNodesToScore: 100")
    assert profile(own).percentage_of_nodes_to_score == 100


def fit(arguments: str) -> Profile:
    return profile(f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {arguments}}}]}}]")


@pytest.mark.parametrize(("weight", "is_allowed"), [(0, False), (1, True), (100, True), (101, False)])
def test_weights_of_resources_are_from_1_to_100(weight: int, is_allowed: bool) -> None:
    text = f"{{scoringStrategy: {{resources: [{{name: cpu, weight: {weight}}}]}}}}"
    if is_allowed:
        assert [(entry.name, entry.weight) for entry in fit(text).fit.resources] == [("cpu", weight)]
    else:
        with pytest.raises(InputError, match="weight of cpu must be 1 to 100"):
            fit(text)


@pytest.mark.parametrize(
    ("points", "is_allowed"),
    [
        ([(0, 0)], True),
        ([(0, 10), (100, 0)], True),
        ([(0, 0), (50, 5), (100, 10)], True),
        ([(-1, 0)], False),
        ([(101, 0)], False),
        ([(0, -1)], False),
        ([(0, 11)], False),
        ([(50, 0), (50, 1)], False),
        ([(60, 0), (50, 1)], False),
    ],
)
def test_points_of_a_shape_rise_within_their_bounds(points: list[tuple[int, int]], is_allowed: bool) -> None:
    shape = ", ".join(f"{{utilization: {used}, score: {score}}}" for used, score in points)
    text = f"{{scoringStrategy: {{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: [{shape}]}}}}}}"
    if is_allowed:
        read = fit(text).fit
        assert read.strategy == "RequestedToCapacityRatio"
        assert [(point.utilization, point.score) for point in read.shape] == points
    else:
        with pytest.raises(InputError, match="utilization must rise within 0–100 and scores lie within 0–10"):
            fit(text)


def test_a_shape_counts_only_for_the_strategy_that_reads_it() -> None:
    shape = "{shape: [{utilization: 0, score: 0}]}"
    read = fit(f"{{scoringStrategy: {{type: MostAllocated, requestedToCapacityRatio: {shape}}}}}").fit
    assert (read.strategy, read.shape) == ("MostAllocated", ())


@pytest.mark.parametrize("strategy", ["", "scoringStrategy: {type: MostAllocated}, "])
def test_resources_may_be_ignored_and_the_others_are_the_default_ones(strategy: str) -> None:
    read = fit(f"{{{strategy}ignoredResources: [example.com/a], ignoredResourceGroups: [example.org]}}").fit
    assert (read.ignored_resources, read.ignored_resource_groups) == (("example.com/a",), ("example.org",))
    assert read.resources == default_profile(VERSIONS["1.35"]).fit.resources


@pytest.mark.parametrize("weight", [0, 100])
def test_the_weight_of_required_affinity_is_from_0_to_100(weight: int) -> None:
    arguments = f"{{hardPodAffinityWeight: {weight}, ignorePreferredTermsOfExistingPods: true}}"
    read = profile(f"profiles: [{{pluginConfig: [{{name: InterPodAffinity, args: {arguments}}}]}}]")
    assert (read.hard_pod_affinity_weight, read.ignore_preferred_terms_of_existing_pods) == (weight, True)
    with pytest.raises(InputError, match="expected 0 to 100, got -1"):
        profile("profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: -1}}]}]")


def test_an_extender_needs_a_weight_only_if_it_is_asked_for_scores() -> None:
    (entry,) = profile("extenders: [{urlPrefix: 'http://x', prioritizeVerb: score, weight: 1}]").extenders
    assert entry.weight == 1
    assert len(profile("extenders: [{urlPrefix: 'http://x', filterVerb: filter}]").extenders) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Pod", "expected kind: KubeSchedulerConfiguration, got 'Pod'"),
        ("[]", "expected kind: KubeSchedulerConfiguration, got []"),
        ("kind: KubeSchedulerConfiguration", "$.apiVersion: expected kubescheduler.config.k8s.io/v1, got None"),
        ("{kind: KubeSchedulerConfiguration, apiVersion: v1}", "got 'v1'"),
    ],
)
def test_another_document_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scheduler_config(text.encode(), VERSIONS["1.35"])
    assert expected in str(caught.value)


def test_of_several_profiles_the_default_one_is_read_and_of_one_that_one() -> None:
    without_filters = "plugins: {filter: {disabled: [{name: '*'}]}}"
    both = f"profiles: [{{schedulerName: a}}, {{schedulerName: default-scheduler, {without_filters}}}]"
    assert profile(both).filters == ()
    assert profile(f"profiles: [{{schedulerName: a, {without_filters}}}]").filters == ()


def test_default_constraints_are_the_systems_or_a_list() -> None:
    constraint = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"

    def spread(arguments: str) -> Profile:
        return profile(f"profiles: [{{pluginConfig: [{{name: PodTopologySpread, args: {{{arguments}}}}}]}}]")

    listed = spread(f"defaultingType: List, defaultConstraints: [{constraint}]")
    assert [entry.topology_key for entry in listed.default_constraints] == ["zone"]
    assert not listed.has_system_default_constraints
    assert spread("defaultingType: System") == profile("")
    with pytest.raises(InputError, match="defaultConstraints: needs defaultingType: List"):
        spread(f"defaultConstraints: [{constraint}]")
