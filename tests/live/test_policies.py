"""Placement policies on a real API server: what it takes, what it refuses, and what `wukong run` reports instead."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from live.accounts import DEADLINE_SECONDS, service_account, used_by, when
from live.bad_policies import REFUSED, REPORTED, Bad
from testbed.client import ApiError, Client, as_json
from testbed.pytest_plugin import Bed
from wukong.api.crds import build_crds
from wukong.api.kinds import KINDS, PLACEMENT_POLICIES
from wukong.app.component import list_permissions
from wukong.app.components.policy import POLICY
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.pods.priority import UNUSED
from wukong.placement.vm.priority import MANAGED_BY, MANAGER

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVERYTHING: dict[str, Any] = {
    "selector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "legacy", "operator": "DoesNotExist"},
        ],
    },
    "capacity": {"strategy": "spot-first", "onDemandBase": "30%", "spotPercent": 70, "fallback": "Wait"},
    "versionAntiAffinity": {"preferred": {"weight": 1}, "topologyKey": "topology.kubernetes.io/zone"},
    "priority": {"value": 1000, "preemptionPolicy": "Never"},
    "disruption": {"maxUnavailable": 1},
    "critical": False,
    "apply": "None",
    "scheduling": {
        "podAffinity": {"required": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}]},
        "podAntiAffinity": {
            "preferred": [
                {
                    "weight": 50,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "web"}},
                        "matchLabelKeys": ["pod-template-hash"],
                    },
                }
            ]
        },
        "nodeAffinity": {
            "required": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["3"]}]}],
            "preferred": [{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}],
        },
        "tolerations": [{"key": "team", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "resourceAffinity": {
            "preferredCPU": {"weight": 80, "threshold": "70%"},
            "preferredMemory": {"weight": 1, "threshold": "0%"},
            "preferredStorage": {"weight": 100, "threshold": "99.5%"},
            "requiredResources": [
                {"resourceType": "gpu", "minAvailable": "1"},
                {"resourceType": "memory", "minAvailable": "4Gi"},
                {"resourceType": "example.com/fpga", "minAvailable": 2},
            ],
        },
        "schedulingPolicy": {
            "schedulerName": "wukong",
            "priority": 100,
            "preemptionPolicy": "Never",
            "rules": [
                {"name": "cost-aware", "type": "score", "weight": 50, "config": {"costFactor": 0.3}},
                {"name": "cost-aware", "type": "filter", "config": {"maxPerHour": 1.5}},
            ],
        },
    },
    "mode": "Observe",
}
# What users have been shown for virtual machines so far must work in a policy, word for word.
KNOWN_SCHEDULING: dict[str, dict[str, Any]] = {
    "resource-aware": {
        "resourceAffinity": {
            "preferredCPU": {"weight": 80, "threshold": "70%"},
            "preferredMemory": {"weight": 60, "threshold": "80%"},
            "requiredResources": [{"resourceType": "gpu", "minAvailable": "1"}],
        }
    },
    "custom-scheduled": {
        "schedulingPolicy": {
            "schedulerName": "custom-scheduler",
            "priority": 100,
            "preemptionPolicy": "PreemptLowerPriority",
            "rules": [{"name": "cost-aware", "type": "score", "weight": 50, "config": {"costFactor": 0.3}}],
        }
    },
    "gpu": {"schedulingPolicy": {"schedulerName": "gpu-scheduler"}},
}


@pytest.fixture(scope="module")
def bed(kinds: Bed) -> Bed:
    """Whose namespaces `namespace` makes: the controller of another worker would judge our policies before ours."""
    return kinds


async def install(bed: Bed) -> None:
    async with bed.client() as client:
        for document in build_crds():
            await create_once(client, DEFINITIONS, document)
            await client.wait_until(f"{DEFINITIONS}/{document['metadata']['name']}", is_established)
        for kind in ("PlacementPolicy", "ClusterPlacementPolicy"):
            await until_served(client, KINDS.resource_named(kind).path())


async def create_once(client: Client, path: str, document: dict[str, Any]) -> None:
    try:
        await client.create(path, document)
    except ApiError as error:
        if error.status != 409:  # another test was first
            raise


async def until_served(client: Client, path: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.get(path)
                return
            except ApiError as error:
                if error.status not in (404, 429, 503):  # a new kind is served a moment after it was made
                    raise
                await asyncio.sleep(0.1)


def is_established(definition: dict[str, Any]) -> bool:
    return condition(definition, "Established").get("status") == "True"


def condition(found: dict[str, Any], type_: str) -> dict[str, Any]:
    conditions = found.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), {})


def path_of(kind: str, namespace: str, name: str = "") -> str:
    return KINDS.resource_named(kind).path(namespace if KINDS.resource_named(kind).namespaced else "", name)


async def create(client: Client, kind: str, namespace: str, name: str, spec: Any, **params: str) -> dict[str, Any]:
    body = {
        "apiVersion": KINDS.resource_named(kind).api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    params.setdefault("fieldValidation", "Strict")
    return as_json(await client.send("POST", path_of(kind, namespace), body, params=params))


@contextlib.contextmanager
def running(kubeconfig: Path, namespace: str, log: Path, *flags: str) -> Iterator[None]:
    """`wukong run --components policy`; ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "policy", "--kubeconfig", str(kubeconfig), "--lease", f"{namespace}/wukong", *flags]
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while "started" not in log.read_text():  # before that it does not know what SIGTERM means
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


async def judged(client: Client, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """The policy once its newest generation has been looked at."""
    return await client.wait_until(
        path_of(kind, namespace, name),
        lambda found: (
            condition(found, "Accepted").get("observedGeneration") == found["metadata"]["generation"]
            and found["status"]["observedGeneration"] == found["metadata"]["generation"]
        ),
        DEADLINE_SECONDS,
    )


# ---- what is wrong


def test_there_are_at_least_forty_bad_policies() -> None:
    assert len(REFUSED) + len(REPORTED) >= 40


@pytest.mark.parametrize("bad", REFUSED, ids=[bad.name for bad in REFUSED])
async def test_a_bad_policy_is_refused_with_its_path(kinds: Bed, bad: Bad) -> None:
    async with kinds.client() as client:
        with pytest.raises(ApiError) as caught:
            await create(client, bad.kind, "default", bad.name, bad.spec, dryRun="All")
    assert caught.value.status == 422
    assert f"{bad.path}: " in str(caught.value)
    assert bad.says in str(caught.value)


async def test_a_field_that_is_not_known_is_refused_by_name(kinds: Bed) -> None:
    async with kinds.client() as client:
        with pytest.raises(ApiError, match=r'unknown field "spec.selektor"'):
            await create(client, "PlacementPolicy", "default", "typo", {"selektor": {}}, dryRun="All")


async def test_what_the_api_server_cannot_know_is_reported_with_its_path(
    kinds: Bed, namespace: str, tmp_path: Path
) -> None:
    log, wrong = tmp_path / "run.log", []
    named = [(bad, f"{namespace[-8:]}-{bad.name}") for bad in REPORTED]
    async with kinds.client() as client:
        try:
            for bad, name in named:
                await create(client, bad.kind, namespace, name, bad.spec)
            with running(kinds.kubeconfig, namespace, log):
                for bad, name in named:
                    found = condition(await judged(client, bad.kind, namespace, name), "Accepted")
                    is_told = bad.path in found["message"] and bad.says in found["message"]
                    if (found["status"], found["reason"]) != ("False", bad.reason) or not is_told:
                        wrong.append((bad.name, found))
        finally:
            await remove(client, namespace, [(bad.kind, name) for bad, name in named])
    assert wrong == []


def raw_policy(name: str, config: bytes) -> bytes:
    """Text, for our own encoder cannot write what is nested so deeply."""
    head = f'{{"apiVersion":"{PLACEMENT_POLICIES.api_version}","kind":"PlacementPolicy","metadata":{{"name":"{name}"}}'
    rule = b'{"name":"label-match","type":"filter","config":' + config + b"}"
    return head.encode() + b',"spec":{"scheduling":{"schedulingPolicy":{"rules":[' + rule + b"]}}}}"


async def test_policies_that_cannot_be_read_end_nothing_and_are_told_so(
    kinds: Bed, namespace: str, tmp_path: Path
) -> None:
    """Nested 1,200 deep the API server takes a config; the decoder that reads our lists does not."""
    log, path = tmp_path / "run.log", path_of("PlacementPolicy", namespace)
    deep = b'{"a":' * 1_200 + b"1" + b"}" * 1_200
    hostile = {"deep": deep, "deeper": deep, "large": b'{"a":"' + b"x" * 70_000 + b'"}'}
    async with kinds.client() as client:
        assert client.session is not None

        async def put(name: str, config: bytes) -> None:
            assert client.session is not None
            headers = {"Content-Type": "application/json"}
            async with client.session.post(path, data=raw_policy(name, config), headers=headers) as response:
                assert response.status == 201, await response.text()

        async def told(name: str) -> str:
            """Of the text, for our decoder cannot read it."""
            assert client.session is not None
            async with asyncio.timeout(DEADLINE_SECONDS):
                while True:
                    async with client.session.get(f"{path}/{name}") as response:
                        text = await response.text()
                    if '"reason":"Unreadable"' in text:
                        return text
                    await asyncio.sleep(0.1)

        try:
            await put("deep", hostile["deep"])
            with running(kinds.kubeconfig, namespace, log):
                await create(client, "PlacementPolicy", namespace, "good", {})
                good = await judged(client, "PlacementPolicy", namespace, "good")
                assert condition(good, "Accepted")["status"] == "True"
                for name in ("deeper", "large"):
                    await put(name, hostile[name])
                texts = {name: await told(name) for name in hostile}
                await create(client, "PlacementPolicy", namespace, "late", {})
                late = await judged(client, "PlacementPolicy", namespace, "late")
                assert condition(late, "Accepted")["status"] == "True"
            for words in (["snapshot", "-o", str(tmp_path / "snapshot.json")], ["explain", f"pod/{namespace}/web"]):
                command = [sys.executable, "-m", "wukong", *words, "--kubeconfig", str(kinds.kubeconfig)]
                result = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
                assert "Traceback" not in result.stderr
                assert "3 placementpolicies could not be read and were left out" in result.stderr, result.stderr
        finally:
            await remove(client, namespace, [("PlacementPolicy", name) for name in (*hostile, "good", "late")])
    assert '"status":"False","type":"Accepted"' in texts["deep"]
    assert "rules[0].config.a" in texts["deep"]
    assert "expected a config of at most 64 KiB, got 68 KiB" in texts["large"]
    said = [line for line in log.read_text().splitlines() if "cannot be read and is left out" in line]
    assert len(said) == len(hostile), said


# ---- what is right


async def test_a_policy_with_every_field_and_what_users_were_shown_is_accepted_and_listed(
    kinds: Bed, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    specs: dict[str, Any] = {"everything": EVERYTHING, "empty": {}, "critical": {"critical": True}}
    specs["apart"] = {"selector": {"matchLabels": {"app": "web"}}, "versionAntiAffinity": {"required": True}}
    specs["classy"] = {"priority": {"className": "high-priority"}}
    specs |= {name: {"scheduling": scheduling} for name, scheduling in KNOWN_SCHEDULING.items()}
    async with kinds.client() as client:
        for name, spec in specs.items():
            made = await create(client, "PlacementPolicy", namespace, name, spec)
            assert made["spec"] == {"mode": "Enforce", **spec}  # nothing was pruned
        with running(kinds.kubeconfig, namespace, log):
            for name in specs:
                found = condition(await judged(client, "PlacementPolicy", namespace, name), "Accepted")
                assert (found["status"], found["reason"]) == ("True", "Understood"), found
        columns, rows = await table(client, path_of("PlacementPolicy", namespace))
    assert columns == ["Name", "Strategy", "Mode", "Accepted", "Age"]
    assert ["everything", "spot-first", "Observe", "True"] in [row[:-1] for row in rows]


async def test_a_mended_policy_is_accepted_and_a_broken_one_no_longer(
    kinds: Bed, namespace: str, tmp_path: Path
) -> None:
    log, path = tmp_path / "run.log", path_of("PlacementPolicy", namespace, "web")

    def rules(name: str) -> dict[str, Any]:
        return {"scheduling": {"schedulingPolicy": {"rules": [{"name": name, "type": "score"}]}}}

    async with kinds.client() as client:
        await create(client, "PlacementPolicy", namespace, "web", rules("cost-awar"))
        with running(kinds.kubeconfig, namespace, log):
            for name, status in (("cost-awar", "False"), ("cost-aware", "True"), ("cost", "False")):
                await client.patch(path, {"spec": rules(name)})
                found = condition(await judged(client, "PlacementPolicy", namespace, "web"), "Accepted")
                assert found["status"] == status


async def test_budgets_and_classes_are_kept_with_exactly_the_rights_that_are_asked_for(
    kinds: Bed, namespace: str, tmp_path: Path
) -> None:
    rules, log = list_permissions([POLICY]), tmp_path / "run.log"
    account = f"system:serviceaccount:{namespace}:policy"
    both = [("PlacementPolicy", namespace), ("ClusterPlacementPolicy", namespace)]
    unused = {"labels": {MANAGED_BY: MANAGER}, "annotations": {UNUSED: "2020-01-01T00:00:00Z"}}
    granted = {(rule.group, rule.resource, verb) for rule in rules for verb in rule.verbs}
    async with kinds.client() as client:
        kubeconfig = await service_account(client, kinds, namespace, "policy", rules, tmp_path)
        try:
            for kind, name in both:  # the cluster's is in no other pod's way: it selects nothing there is
                selector = {"selector": {"matchLabels": {"nobody": namespace[-8:]}}}
                await create(client, kind, namespace, name, selector)
            with running(kubeconfig, namespace, log, "--split-pause-seconds", "0"):
                for kind, name in both:
                    await judged(client, kind, namespace, name)
                async with two_nodes(client, namespace) as steady:
                    await move_to_spot(client, namespace, steady)
                await client.create(CLASSES, {"metadata": {"name": "placement-7", **unused}, "value": 7})
                await keep_and_give_up(client, namespace)
                await client.wait_until_gone(f"{CLASSES}/placement-7", DEADLINE_SECONDS)
                await when(lambda: used_by(kinds, account) == granted, lambda: f"{used_by(kinds, account)}, {granted}")
        finally:
            await remove(client, namespace, both)


@contextlib.asynccontextmanager
async def two_nodes(client: Client, namespace: str) -> AsyncIterator[str]:
    """A node on demand, whose name is given, and one on spot. Nobody runs them: they are ready for a while."""
    names = [f"{namespace}-steady", f"{namespace}-spot"]
    for name in names:
        meta = {"name": name, "labels": {OWN_LABEL: "spot" if name.endswith("-spot") else "on-demand"}}
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        await client.create("/api/v1/nodes", {"metadata": meta})
        await client.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        await client.wait_until(f"/api/v1/nodes/{name}", lambda node: not node["spec"].get("taints"))
    try:
        yield names[0]
    finally:
        for name in names:
            await client.delete(f"/api/v1/nodes/{name}")


async def move_to_spot(client: Client, namespace: str, steady: str) -> None:
    """A pod that is on demand and belongs on spot is evicted, twice, and the policy tells of it."""
    policy, path = path_of("PlacementPolicy", namespace, namespace), path_of("Pod", namespace, "web-0")
    labels = {"nobody": namespace[-8:]}
    container = {"name": "main", "image": "main:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "nodeName": steady}}
    spec = {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": labels}, "template": template}
    await create(client, "StatefulSet", namespace, "web", spec)
    await client.patch(policy, {"spec": {"capacity": {"strategy": "spot-first", "spotPercent": 100}}})
    for _ in range(2):  # nobody tells the scheduler where it belongs: the next one is wrong again
        await client.wait_until(path, lambda pod: "deletionTimestamp" not in pod["metadata"])
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(f"{path}/status", {"status": ready})
        gone = await client.wait_until(path, lambda pod: "deletionTimestamp" in pod["metadata"])
        assert condition(gone, "DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
        await client.delete(path, grace_seconds=0)
    told = await client.wait_until(policy, lambda found: bool(found["status"].get("split", {}).get("repairs")))
    (repair,) = told["status"]["split"]["repairs"]
    assert (repair["owner"], repair["pod"]) == (f"StatefulSet {namespace}/web", gone["metadata"]["uid"])
    await client.patch(policy, {"spec": {"capacity": None}})
    await client.wait_until(policy, lambda found: "split" not in found["status"])
    await client.delete(path_of("StatefulSet", namespace, "web"))


async def keep_and_give_up(client: Client, namespace: str) -> None:
    """A policy asks for a budget and a priority, another budget, and nothing; meanwhile a user makes his own."""
    policy, budgets = path_of("PlacementPolicy", namespace, namespace), path_of("PodDisruptionBudget", namespace)
    labels, ours = {"nobody": namespace[-8:]}, f"{budgets}/wukong-{namespace}"
    await client.patch(policy, {"spec": {"disruption": {"maxUnavailable": 1}, "priority": {"value": 8}}})
    budget = await client.wait_until(ours, lambda found: "disruptionsAllowed" in found.get("status", {}))
    assert budget["spec"] == {
        "selector": {"matchLabels": labels},
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    assert (await client.wait_until(f"{CLASSES}/placement-8", bool))["value"] == 8
    await client.patch(policy, {"spec": {"disruption": {"maxUnavailable": None, "minAvailable": "50%"}}})
    await client.wait_until(ours, lambda found: found["spec"].get("minAvailable") == "50%")
    container = {"name": "main", "image": "main:1"}
    pod = {"metadata": {"name": "pod", "labels": labels}, "spec": {"containers": [container], "nodeName": "nowhere"}}
    await client.create(path_of("Pod", namespace), pod)
    theirs = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    await create(client, "PodDisruptionBudget", namespace, "theirs", theirs)
    await client.wait_until_gone(ours, DEADLINE_SECONDS)
    told = await client.wait_until(policy, lambda found: condition(found, "BudgetConflict").get("status") == "True")
    assert "PodDisruptionBudget theirs" in condition(told, "BudgetConflict")["message"]
    await client.delete(f"{budgets}/theirs")
    assert "minAvailable" in (await client.wait_until(ours, bool))["spec"]
    await client.patch(policy, {"spec": {"disruption": None, "priority": None}})
    await client.wait_until_gone(ours, DEADLINE_SECONDS)
    is_marked = await client.wait_until(f"{CLASSES}/placement-8", lambda found: "annotations" in found["metadata"])
    assert UNUSED in is_marked["metadata"]["annotations"]
    await client.delete(f"{CLASSES}/placement-8")


async def table(client: Client, path: str) -> tuple[list[str], list[list[Any]]]:
    """What `kubectl get` shows: the columns that are not only for -o wide, and their cells."""
    assert client.session is not None
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with client.session.get(path, headers=accept) as response:
        found = await response.json()
    shown = [index for index, column in enumerate(found["columnDefinitions"]) if column["priority"] == 0]
    columns = [found["columnDefinitions"][index]["name"] for index in shown]
    return columns, [[row["cells"][index] for index in shown] for row in found["rows"]]


async def remove(client: Client, namespace: str, named: list[tuple[str, str]]) -> None:
    for kind, name in named:
        with contextlib.suppress(ApiError):
            await client.delete(path_of(kind, namespace, name))
