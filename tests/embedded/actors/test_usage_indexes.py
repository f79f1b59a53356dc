"""The indexes of what pods take of quotas, and of which Services select them, are what a plain search finds."""

from __future__ import annotations

from random import Random

from wukong.api.core import Service
from wukong.api.kinds import PODS, SERVICES
from wukong.api.meta import Object
from wukong.api.quota import ScopedSelectorRequirement
from wukong.api.resources import Key
from wukong.embedded.actors.endpoint_slices.service_index import ServiceIndex
from wukong.embedded.actors.resource_quota.pod_usage import PodUsage
from wukong.embedded.store.documents import format_time
from wukong.embedded.store.limits.amounts import Amounts, add_amounts, has_same_amounts
from wukong.embedded.store.limits.pod_scopes import read_scopes
from wukong.embedded.store.limits.usage import measure_pod
from wukong.embedded.world.objects import Pod, read
from wukong.ports import Document

NOW = 1_000_000.0
SCOPES = [
    [],
    [ScopedSelectorRequirement(scope_name="BestEffort", operator="Exists")],
    [ScopedSelectorRequirement(scope_name="NotTerminating", operator="Exists")],
]
SPECS: list[Document] = [
    {"containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}} if cpu else {}}], **more}
    for cpu in ("", "1", "250m")
    for more in ({}, {"activeDeadlineSeconds": 5})
]


def draw_pod(random: Random, key: Key) -> Object:
    meta: Document = {"name": key.name, "namespace": key.namespace, "labels": {"app": random.choice("ab")}}
    if random.random() < 0.2:
        meta |= {
            "deletionTimestamp": format_time(NOW + random.choice((-100, 100))),
            "deletionGracePeriodSeconds": random.choice((0, 30)),
        }
    status = {"phase": random.choice(("Pending", "Running", "Succeeded"))}
    return read("Pod", {"metadata": meta, "spec": random.choice(SPECS), "status": status})


def sum_plainly(pods: dict[Key, Object], namespace: str, scopes: list[ScopedSelectorRequirement]) -> Amounts:
    total: Amounts = {}
    for key, pod in pods.items():
        assert isinstance(pod, Pod)
        if key.namespace == namespace and all(map(read_scopes(pod.document).matches, scopes)):
            add_amounts(total, measure_pod(pod.document, NOW))
    return total


def test_usage_is_the_sum_of_all_pods_whatever_happened_and_forks_are_independent() -> None:
    random = Random(7)
    index, pods = PodUsage(), dict[Key, Object]()
    for step in range(400):
        if step == 200:
            index.fork().note(PODS.group_kind, Key("a", "stranger"), None, draw_pod(random, Key("a", "stranger")))
        key = Key(random.choice("ab"), f"p{random.randrange(12)}")
        old, new = pods.get(key), draw_pod(random, key) if random.random() < 0.7 else None
        if old is None and new is None:
            continue
        index.note(PODS.group_kind, key, old, new)
        pods.pop(key, None)
        if new is not None:
            pods[key] = new
        for namespace in "ab":
            for scopes in SCOPES:
                expected = sum_plainly(pods, namespace, scopes)
                assert has_same_amounts(index.sum_up(namespace, scopes, NOW), expected), step


def test_services_of_a_pod_are_those_whose_selector_its_labels_meet() -> None:
    random = Random(8)
    index, services = ServiceIndex(), dict[Key, Object]()
    pod = read("Pod", {"metadata": {"name": "p", "namespace": "a", "labels": {"app": "a", "tier": "b"}}, "spec": {}})
    assert isinstance(pod, Pod)
    for _ in range(200):
        key = Key(random.choice("ab"), f"s{random.randrange(6)}")
        selector = random.choice(({"app": "a"}, {"app": "b"}, {"app": "a", "tier": "b"}, {}, None))
        document = {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": {"selector": selector}}
        old, new = services.get(key), read("Service", document) if random.random() < 0.7 else None
        index.note(SERVICES.group_kind, key, old, new)
        services.pop(key, None)
        if new is not None:
            services[key] = new
        expected = [
            key
            for key, service in services.items()
            if key.namespace == "a"
            and isinstance(service, Service)
            and service.spec.selector is not None
            and service.spec.selector.items() <= pod.metadata.labels.items()
        ]
        assert index.of(pod) == sorted(expected)
        assert index.fork().of(pod) == sorted(expected)
