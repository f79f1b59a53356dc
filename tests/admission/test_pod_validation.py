"""What the API server refuses: each problem with its place, what was expected, what was found and the fix."""

from typing import Any

import pytest

from rules.samples import Manifest, a_container, a_pod, expression, node_affinity
from wukong.admission import find_pod_problems

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"$.spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
NUMBER_FIX = 'Write one whole number in quotes, such as "5"; signs are not allowed.'
VALUE_FORM = "a label value: up to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
KEY_FORM = 'a label key such as "app" or "example.com/app"'


def requests(**quantities: Any) -> Manifest:
    return {"containers": [a_container(requests=quantities)]}


def requests_within(requested: Manifest, limits: Manifest) -> Manifest:
    return {"containers": [a_container(requests=requested, limits=limits)]}


def affinity_with(**fields: Any) -> Manifest:
    term = {"topologyKey": ZONE, "labelSelector": {}, **fields}
    return {"affinity": {"podAffinity": {REQUIRED: [term]}}}


def spread(**fields: Any) -> Manifest:
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "labelSelector": {}, **fields}]}


def tolerating(**fields: Any) -> Manifest:
    return {"tolerations": [fields]}


def ports(**fields: Any) -> Manifest:
    return {"containers": [a_container(ports=[{"containerPort": 80, **fields}])]}


def fields(**field: Any) -> Manifest:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"containers": []},
            "$.spec.containers: expected at least one container, got nothing. Add one with a name and an image.",
        ),
        # Quantities
        (
            requests(cpu="1 core"),
            '$.spec.containers[0].resources.requests.cpu: expected a quantity such as "500m", "2" or "1.5Gi", got '
            "'1 core'. Use digits and one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent like "
            "1e3.",
        ),
        (
            requests(memory="-1Gi"),
            '$.spec.containers[0].resources.requests.memory: expected 0 or more, got "-1Gi". Remove the minus sign.',
        ),
        (
            requests(gpu="1"),
            "$.spec.containers[0].resources.requests.gpu: expected cpu, memory, ephemeral-storage or a name with a "
            'domain such as nvidia.com/gpu, got "gpu". Mend the name.',
        ),
        (
            requests(memroy="1Gi"),
            "$.spec.containers[0].resources.requests.memroy: expected cpu, memory, ephemeral-storage or a name with a "
            'domain such as nvidia.com/gpu, got "memroy". Mend the name. Did you mean "memory"?',
        ),
        (
            requests_within({"cpu": "2"}, {"cpu": "1500m"}),
            '$.spec.containers[0].resources.requests.cpu: expected at most the limit, 1500m, got "2". Lower the '
            "request or raise the limit.",
        ),
        (
            requests(**{"nvidia.com/gpu": 1}),
            '$.spec.containers[0].resources.limits["nvidia.com/gpu"]: expected the same as the request, 1, got '
            "nothing. Add the limit.",
        ),
        (
            requests_within({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}),
            '$.spec.containers[0].resources.requests["nvidia.com/gpu"]: expected the same as the limit, 2, got 1. Make '
            "them equal.",
        ),
        (
            requests_within({}, {"nvidia.com/gpu": "500m"}),
            '$.spec.containers[0].resources.limits["nvidia.com/gpu"]: expected a whole number, got "500m". '
            "nvidia.com/gpu comes in whole pieces: round it.",
        ),
        ({"overhead": {"cpu": "-1"}}, '$.spec.overhead.cpu: expected 0 or more, got "-1". Remove the minus sign.'),
        (
            {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
            "$.spec.resources.limits.ephemeral-storage: expected cpu, memory or hugepages-…, got "
            '"ephemeral-storage". Move it to the containers.',
        ),
        (
            {"containers": [a_container(requests={"cpu": "2"})], "resources": {"requests": {"cpu": "1"}}},
            '$.spec.resources.requests.cpu: expected at least what the containers ask for, 2, got "1". Raise it.',
        ),
        # Ports
        (
            ports(containerPort=0),
            "$.spec.containers[0].ports[0].containerPort: expected 1 to 65535, got 0. Give the port a number.",
        ),
        (
            ports(hostPort=70000),
            "$.spec.containers[0].ports[0].hostPort: expected 1 to 65535, got 70000. Mend it, or leave it out.",
        ),
        (
            {**ports(hostPort=81), "hostNetwork": True},
            "$.spec.containers[0].ports[0].hostPort: expected the containerPort, 80, got 81. Leave hostPort out: with "
            "hostNetwork both are the same.",
        ),
        (
            ports(protocol="tcp"),
            '$.spec.containers[0].ports[0].protocol: expected TCP, UDP or SCTP, got "tcp". Use one of them.',
        ),
        # Node affinity
        (
            {"nodeSelector": {"disk": "not valid"}},
            f'$.spec.nodeSelector.disk: expected {VALUE_FORM}, got "not valid". Mend the value.',
        ),
        (
            {"affinity": node_affinity()},
            f"{TERMS}: expected at least one term, got nothing. Add a term, or remove the requirement.",
        ),
        (
            {"affinity": node_affinity([expression("gen", "Gt", "abc")])},
            f'{TERMS}[0].matchExpressions[0].values: expected exactly one integer for Gt, got ["abc"]. {NUMBER_FIX}',
        ),
        (
            {"affinity": node_affinity([expression("gen", "Lt", "1", "2")])},
            f'{TERMS}[0].matchExpressions[0].values: expected exactly one integer for Lt, got ["1", "2"]. {NUMBER_FIX}',
        ),
        (
            {"affinity": node_affinity([expression("gen", "Lt")])},
            f"{TERMS}[0].matchExpressions[0].values: expected exactly one integer for Lt, got nothing. {NUMBER_FIX}",
        ),
        (
            {"affinity": node_affinity([expression("disk", "In")])},
            f"{TERMS}[0].matchExpressions[0].values: expected at least one value for In, got nothing. List the values.",
        ),
        (
            {"affinity": node_affinity([expression("disk", "Exists", "ssd")])},
            f'{TERMS}[0].matchExpressions[0].values: expected no values for Exists, got ["ssd"]. Remove them, or use '
            "In or NotIn.",
        ),
        (
            {"affinity": node_affinity([expression("-disk", "Exists")])},
            f'{TERMS}[0].matchExpressions[0].key: expected {KEY_FORM}, got "-disk". Mend the key.',
        ),
        (
            fields(key="metadata.nam", operator="In", values=["n1"]),
            f'{TERMS}[0].matchFields[0].key: expected "metadata.name", the only field, got "metadata.nam". Use '
            'matchExpressions. Did you mean "metadata.name"?',
        ),
        (
            fields(key="metadata.name", operator="In", values=["n1", "n2"]),
            f'{TERMS}[0].matchFields[0].values: expected exactly one node name, got ["n1", "n2"]. Write one term per '
            "node.",
        ),
        (
            fields(key="metadata.name", operator="Gt", values=["n1"]),
            f'{TERMS}[0].matchFields[0].operator: expected In or NotIn, got "Gt". Other operators are for labels.',
        ),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}},
            f"$.spec.affinity.nodeAffinity.{PREFERRED}[0].weight: expected 1 to 100, got 101. Give it a weight "
            "such as 50.",
        ),
        # Pod affinity
        (
            {
                "affinity": {
                    "podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": ZONE}}]},
                }
            },
            f"$.spec.affinity.podAffinity.{PREFERRED}[0].weight: expected 1 to 100, got 0. Give it a weight such "
            "as 50.",
        ),
        (
            affinity_with(topologyKey=""),
            f'$.spec.affinity.podAffinity.{REQUIRED}[0].topologyKey: expected a node label key, got "". Name one such '
            'as "topology.kubernetes.io/zone".',
        ),
        (
            affinity_with(labelSelector={"matchLabels": {"app": "a b"}}),
            f"$.spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchLabels.app: expected {VALUE_FORM}, got "
            '"a b". Mend the value.',
        ),
        (
            affinity_with(namespaceSelector={"matchExpressions": [expression("team", "NotIn")]}),
            f"$.spec.affinity.podAffinity.{REQUIRED}[0].namespaceSelector.matchExpressions[0].values: expected at "
            "least one value for NotIn, got nothing. List the values.",
        ),
        (
            affinity_with(namespaces=["Web"]),
            f'$.spec.affinity.podAffinity.{REQUIRED}[0].namespaces[0]: expected the name of a namespace, got "Web". '
            "Mend the name.",
        ),
        (
            affinity_with(labelSelector=None, mismatchLabelKeys=["rev"]),
            f"$.spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: expected a selector, for mismatchLabelKeys is "
            "set, got nothing. Add one, or remove the keys.",
        ),
        (
            affinity_with(matchLabelKeys=["rev"], mismatchLabelKeys=["rev"]),
            f"$.spec.affinity.podAffinity.{REQUIRED}[0].matchLabelKeys[0]: expected a key that mismatchLabelKeys does "
            'not name, got "rev". Remove it from one of the two.',
        ),
        (
            affinity_with(matchLabelKeys=["rev"], labelSelector={"matchLabels": {"rev": "1"}}),
            f"$.spec.affinity.podAffinity.{REQUIRED}[0].matchLabelKeys[0]: expected a key that labelSelector does not "
            'mention, got "rev". Remove it from one of the two.',
        ),
        # Tolerations
        (
            tolerating(key="spot", operator="Exist"),
            '$.spec.tolerations[0].operator: expected Equal or Exists, got "Exist". Use one of them. Did you mean '
            '"Exists"?',
        ),
        (
            tolerating(key="spot", operator="Exists", value="true"),
            '$.spec.tolerations[0].value: expected no value for Exists, got "true". Remove it, or use the operator '
            "Equal.",
        ),
        (
            tolerating(value="true"),
            '$.spec.tolerations[0].operator: expected Exists, for there is no key, got "Equal". Name the key, or use '
            "Exists to tolerate every taint.",
        ),
        (
            tolerating(key="spot", value="a b"),
            "$.spec.tolerations[0].value: expected a taint value, got \"a b\". Use letters, digits, '-', '_' and '.'.",
        ),
        (
            tolerating(key="spot", operator="Exists", effect="NoShedule"),
            '$.spec.tolerations[0].effect: expected NoSchedule, NoExecute or PreferNoSchedule, got "NoShedule". Use '
            'one of them, or none for all. Did you mean "NoSchedule"?',
        ),
        (
            tolerating(key="spot", operator="Exists", effect="NoSchedule", tolerationSeconds=30),
            '$.spec.tolerations[0].effect: expected NoExecute, for tolerationSeconds is set, got "NoSchedule". Set the '
            "effect, or remove tolerationSeconds.",
        ),
        # Spreading
        (
            spread(maxSkew=0),
            "$.spec.topologySpreadConstraints[0].maxSkew: expected 1 or more, got 0. Set it to 1 for the evenest "
            "spread.",
        ),
        (
            spread(topologyKey=""),
            '$.spec.topologySpreadConstraints[0].topologyKey: expected a node label key, got "". Name one such as '
            '"topology.kubernetes.io/zone".',
        ),
        (
            spread(minDomains=0),
            "$.spec.topologySpreadConstraints[0].minDomains: expected 1 or more, got 0. Raise it, or leave it out.",
        ),
        (
            spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
            "$.spec.topologySpreadConstraints[0].whenUnsatisfiable: expected DoNotSchedule, for minDomains is set, got "
            '"ScheduleAnyway". Remove minDomains, or make the constraint a hard one.',
        ),
        (
            {"topologySpreadConstraints": 2 * spread()["topologySpreadConstraints"]},
            "$.spec.topologySpreadConstraints[1]: expected another topologyKey or whenUnsatisfiable, got the same as "
            "[0], {topology.kubernetes.io/zone, DoNotSchedule}. Merge the two.",
        ),
        (
            spread(labelSelector=None, matchLabelKeys=["rev"]),
            "$.spec.topologySpreadConstraints[0].labelSelector: expected a selector, for matchLabelKeys is set, got "
            "nothing. Add one, or remove the keys.",
        ),
        (
            {"preemptionPolicy": "never"},
            '$.spec.preemptionPolicy: expected PreemptLowerPriority or Never, got "never". Use one of them. Did you '
            'mean "Never"?',
        ),
    ],
)
def test_a_problem_is_told_with_place_expectation_finding_and_fix(spec: Manifest, expected: str) -> None:
    assert find_pod_problems(a_pod(**spec)) == [expected]


def test_a_preferred_value_the_scheduler_cannot_read_is_a_problem_although_the_api_server_stores_it() -> None:
    preference = {"matchExpressions": [expression("gen", "Gt", "-5")]}
    pod = a_pod(affinity={"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": preference}]}})
    assert find_pod_problems(pod) == [
        f"$.spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].values: expected exactly one "
        f'integer for Gt, got ["-5"]. {NUMBER_FIX}'
    ]


def test_malformed_labels_of_the_pod_itself() -> None:
    assert find_pod_problems(a_pod(labels={"example.com/app": "-"})) == [
        f'$.metadata.labels["example.com/app"]: expected {VALUE_FORM}, got "-". Mend the value.'
    ]
    (problem,) = find_pod_problems(a_pod(labels={"a/b/c": "web"}))
    assert problem.startswith('$.metadata.labels["a/b/c"]: expected a label key')


def test_every_problem_is_reported_at_once() -> None:
    pod = a_pod(
        **requests(cpu="x", memory="y"),
        **tolerating(operator="Nope", effect="Never"),
        **spread(maxSkew=0, minDomains=0),
    )
    assert [line.partition(":")[0] for line in find_pod_problems(pod)] == [
        "$.spec.containers[0].resources.requests.cpu",
        "$.spec.containers[0].resources.requests.memory",
        "$.spec.tolerations[0].operator",
        "$.spec.tolerations[0].effect",
        "$.spec.topologySpreadConstraints[0].maxSkew",
        "$.spec.topologySpreadConstraints[0].minDomains",
    ]


def preferring(weight: int) -> Manifest:
    preference = {"matchExpressions": [expression("disk", "In", "ssd")]}
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": preference}]}}}


@pytest.mark.parametrize(
    ("spec", "is_allowed"),
    [
        *((ports(containerPort=number), is_allowed) for number, is_allowed in
          ((0, False), (1, True), (65535, True), (65536, False))),
        *((ports(hostPort=number), is_allowed) for number, is_allowed in
          ((-1, False), (0, True), (1, True), (65535, True), (65536, False))),
        *((preferring(weight), is_allowed) for weight, is_allowed in
          ((0, False), (1, True), (100, True), (101, False))),
        *((spread(maxSkew=skew), is_allowed) for skew, is_allowed in ((0, False), (1, True))),
        *((spread(whenUnsatisfiable="DoNotSchedule", minDomains=least), is_allowed) for least, is_allowed in
          ((0, False), (1, True))),
        *((requests(cpu=amount), is_allowed) for amount, is_allowed in (("-1n", False), ("0", True))),
        (requests_within({"cpu": "1"}, {"cpu": "1"}), True),
        (requests_within({"cpu": "1001m"}, {"cpu": "1"}), False),
        ({"containers": [a_container(requests={"cpu": "2"})], "resources": {"requests": {"cpu": "2"}}}, True),
    ],
)  # fmt: skip
def test_numbers_are_allowed_up_to_their_bounds(spec: Manifest, is_allowed: bool) -> None:
    assert (find_pod_problems(a_pod(**spec)) == []) == is_allowed


def test_a_thorough_pod_has_no_problems() -> None:
    pod = a_pod(
        labels={"app": "web", "rev": "1"},
        nodeSelector={"disk": "ssd"},
        containers=[
            a_container(
                requests={"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi"},
                limits={"cpu": 1.5, "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
                ports=[{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}],
            )
        ],
        tolerations=[
            {"operator": "Exists"},
            {"key": "spot", "value": "true", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        affinity={
            **node_affinity([expression("gen", "Gt", "5"), expression("pool", "In", "")]),
            "podAntiAffinity": {
                PREFERRED: [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": ZONE,
                            "labelSelector": {"matchLabels": {"app": "web"}},
                            "matchLabelKeys": ["rev"],
                            "namespaces": ["default"],
                        },
                    }
                ]
            },
        },
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3},
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "2Gi"}},
        preemptionPolicy="Never",
    )
    assert find_pod_problems(pod) == []
