"""A real API server that asks our webhooks: pods get what policies say, and none is lost, whatever happens to us."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from live import random_cluster
from live.accounts import used_by
from live.admitting import (
    ACCOUNT,
    BARE,
    CONFIGURATIONS,
    INSTALLATION,
    OPEN,
    PERMISSIONS,
    POD,
    POLICIES,
    SECOND_POD,
    SECRET,
    Webhooks,
    a_pod,
    capacity_of,
    create_pod,
    is_marked,
    put_policy,
    random_rules,
    try_to_create,
)
from live.extending import counted
from live.test_manifests import PATHS
from testbed import supervisor
from testbed.client import ApiError, Client
from testbed.programs import Programs
from testbed.pytest_plugin import RUN, Bed
from testbed.supervisor import Order
from wukong.app.components.admission.install import build_manifests
from wukong.app.components.admission.options import SERVICE
from wukong.app.components.admission.rotation import RotationTimes, encode_keys, take_step
from wukong.app.install.installation import NAMESPACE
from wukong.app.permissions import merge_permissions
from wukong.controllers.admission.controller import LEADER_LABEL
from wukong.placement.pods import MARK
from wukong.replies.admission.decisions import NONCE

Json = dict[str, Any]
SPOT_FIRST = {"selector": {"matchLabels": {"app": "web"}}, "capacity": {"strategy": "spot-first"}}
SEED = 20261116
NAME = f"{SERVICE}.{NAMESPACE}"
WEBHOOK_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@pytest.fixture(scope="module")
def webhooks(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhooks]:
    """A cluster of its own: other tests' pods are none of our business."""
    folder = tmp_path_factory.mktemp("admission")
    order = Order(nodes=0, owner=request.config.stash[RUN].owner)
    state = supervisor.up(folder / "bed", order, lambda line: None)
    webhooks = Webhooks(Bed(state.kubeconfig, state.seconds), folder)
    try:
        asyncio.run(prepare(webhooks))
        yield webhooks
        webhooks.end()
    finally:
        if webhooks.process is not None:
            webhooks.kill()
        supervisor.down(folder / "bed", keep_logs=True)


async def prepare(webhooks: Webhooks) -> None:
    await webhooks.install()
    async with webhooks.bed.client() as client:
        await put_policy(client, "web", SPOT_FIRST)
    await webhooks.start()


async def until_policy_holds(client: Client, probe: str, spec: Json) -> None:
    """The webhook has heard of every policy so far: it obeys this one, which came last."""
    await put_policy(client, "zz-probe", {"selector": {"matchLabels": {"probe": probe}}, **spec})
    pod = a_pod()
    pod["metadata"]["labels"] = {"probe": probe}
    async with asyncio.timeout(30):
        while not is_marked(await create_pod(client, OPEN, pod, is_dry_run=True)):
            await asyncio.sleep(0.05)


# Order matters in this module: what comes first finds the webhooks as they were started.


async def test_a_pod_is_patched_and_what_its_author_wrote_stays(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        with_webhook, without = [await create_pod(client, namespace, a_pod("same")) for namespace in (OPEN, BARE)]
        assert is_marked(with_webhook)
        assert not is_marked(without)
        assert_kept(without, with_webhook)
        mark = json.loads(with_webhook["metadata"]["annotations"][MARK])
        assert mark["generation"] == (await client.get(f"{POLICIES}/web"))["metadata"]["generation"]


async def test_the_pod_that_leads_has_the_label(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        await client.wait_until(f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}", leads)


async def test_hundreds_of_random_pods_are_created_exactly_when_they_are_without_it(webhooks: Webhooks) -> None:
    """On a dry run: the whole of admission and validation, and nothing is stored."""
    rng, tried = random.Random(SEED), 0
    refused = patched = 0
    async with webhooks.bed.client() as client:
        for path, manifest in (
            ("/apis/scheduling.k8s.io/v1/priorityclasses", random_cluster.a_priority_class("high", 1000)),
            ("/apis/scheduling.k8s.io/v1/priorityclasses", random_cluster.a_priority_class("low", -10)),
        ):
            await client.create(path, manifest)
        for namespace in (OPEN, BARE):
            await limit(client, namespace)
        async with asyncio.timeout(30):
            while await counted(webhooks.probes, "wukong_mirror_objects", kind="ResourceQuota") < 2:
                await asyncio.sleep(0.05)
        for number in range(5):
            for app in random_cluster.APPS:
                await put_policy(client, app, {"selector": {"matchLabels": {"app": app}}, **random_rules(rng)})
            await until_policy_holds(client, f"random-{number}", {"capacity": {"strategy": "spot-only"}})
            pods = [a_random_pod(rng, f"p-{tried + index}") for index in range(100)]
            tried += len(pods)
            pairs = await asyncio.gather(*(try_both(client, pod) for pod in pods))
            for pod, (without, with_webhook) in zip(pods, pairs, strict=True):
                if isinstance(without, int) or isinstance(with_webhook, int):
                    assert without == with_webhook, pod
                    refused += 1
                    continue
                patched += is_marked(with_webhook)
                assert_kept(without, with_webhook)
    assert tried == 500
    assert patched > 200
    assert refused < 250


async def test_a_quota_for_a_class_refuses_no_pod_that_it_would_not_refuse_without_us(webhooks: Webhooks) -> None:
    """It has no room for class high, which the policy asks for: the pod keeps its own class."""
    spec = {"priority": {"className": "high"}, "capacity": {"strategy": "spot-first"}}
    async with webhooks.bed.client() as client:
        await until_policy_holds(client, "quota", spec)
        pod = a_pod()
        pod["metadata"]["labels"] = {"probe": "quota"}
        created = await create_pod(client, OPEN, pod, is_dry_run=True)
        assert "priorityClassName" not in created["spec"]
        pod["spec"]["priorityClassName"] = "high"
        with pytest.raises(ApiError, match="exceeded quota"):
            await create_pod(client, OPEN, pod, is_dry_run=True)


async def limit(client: Client, namespace: str) -> None:
    """Defaults for containers, and no pod of class high: whoever gets that class by a policy would be refused."""
    core, high = f"/api/v1/namespaces/{namespace}", {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    limits = [{"type": "Container", "defaultRequest": {"cpu": "10m"}, "default": {"memory": "2Gi"}}]
    await client.create(f"{core}/limitranges", {"metadata": {"name": "limits"}, "spec": {"limits": limits}})
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [high]}}
    await client.create(f"{core}/resourcequotas", {"metadata": {"name": "no-high"}, "spec": spec})
    await client.wait_until(f"{core}/resourcequotas/no-high", lambda quota: "hard" in quota["status"])


def a_random_pod(rng: random.Random, name: str) -> Json:
    pod = random_cluster.random_pod(rng, name, dict.fromkeys(random_cluster.NAMESPACES, "none"))
    pod["metadata"] = {"name": name, "labels": pod["metadata"]["labels"]}
    if rng.random() < 0.1:  # one that no API server takes
        pod["spec"]["tolerations"] = [{"key": "-", "operator": "Never"}]
    return pod


async def try_both(client: Client, pod: Json) -> tuple[Json | int, Json | int]:
    return await try_to_create(client, BARE, pod), await try_to_create(client, OPEN, pod)


def assert_kept(without: Json, with_webhook: Json) -> None:
    """All that the author wrote, and the API server filled in, is there as it was; lists have it first."""
    for field in ("labels", "annotations"):
        kept = without["metadata"].get(field) or {}
        assert kept.items() <= (with_webhook["metadata"].get(field) or {}).items()
    before, after = masked(without), masked(with_webhook)
    for field in before.keys() | after.keys():
        if field in ("priority", "priorityClassName", "preemptionPolicy"):
            continue  # a policy may set the class where the author named none
        if field == "affinity":
            assert_affinity_kept(before.get(field) or {}, after.get(field) or {})
        elif field in ("tolerations", "topologySpreadConstraints"):
            kept = before.get(field) or []
            assert [entry for entry in after[field] if entry in kept] == kept
        else:
            assert before.get(field) == after.get(field), field
    assert without["spec"].get("priorityClassName", "") in ("", with_webhook["spec"].get("priorityClassName"))


def masked(pod: Json) -> Json:
    """Without the name of the token's volume, which is random."""
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"].startswith("kube-api-access-"):
            return dict(json.loads(json.dumps(pod["spec"]).replace(volume["name"], "token")))
    return dict(pod["spec"])


def assert_affinity_kept(before: Json, after: Json) -> None:
    for side in ("podAffinity", "podAntiAffinity", "nodeAffinity"):
        for kind, kept in (before.get(side) or {}).items():
            now = after[side][kind]
            if isinstance(kept, list):
                assert [entry for entry in now if entry in kept] == kept
                continue
            # Required node terms: ours are ANDed into each; whoever meets one of them meets one of the author's.
            for term in now["nodeSelectorTerms"]:
                assert any(contains(term, own) for own in kept["nodeSelectorTerms"]), (term, kept)


def contains(term: Json, own: Json) -> bool:
    fields = ("matchExpressions", "matchFields")
    return all(entry in (term.get(field) or []) for field in fields for entry in own.get(field) or [])


async def test_three_hundred_pods_in_a_burst_are_split_exactly(webhooks: Webhooks) -> None:
    spec = {"capacity": {"strategy": "spot-preferred", "onDemandBase": 30, "spotPercent": 70}}
    async with webhooks.bed.client() as client:
        await put_policy(client, "burst", {"selector": {"matchLabels": {"app": "burst"}}, **spec})
        await until_policy_holds(client, "burst", spec)
        pod = a_pod()
        pod["metadata"]["labels"] = {"app": "burst"}
        for _ in range(3):  # leaves nothing behind
            await create_pod(client, OPEN, pod, is_dry_run=True)
        created = await asyncio.gather(*(create_pod(client, OPEN, pod) for _ in range(300)))
        capacities = [capacity_of(entry) for entry in created]
        assert (capacities.count("on-demand"), capacities.count("spot")) == (90, 210)
        assert len({entry["metadata"]["annotations"][NONCE] for entry in created}) == 300
        assert NONCE not in (await create_pod(client, OPEN, pod, is_dry_run=True))["metadata"]["annotations"]


async def test_a_policy_that_cannot_be_understood_is_refused_with_the_reason(webhooks: Webhooks) -> None:
    rules = {"scheduling": {"schedulingPolicy": {"rules": [{"name": "cost-awre", "type": "score"}]}}}
    async with webhooks.bed.client() as client:
        with pytest.raises(ApiError, match='Did you mean "cost-aware"') as caught:
            await put_policy(client, "bad", rules)
        assert "$.spec.scheduling.schedulingPolicy.rules[0].name" in str(caught.value)


async def test_observe_and_none_change_nothing(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        for number, word in enumerate(({"mode": "Observe"}, {"apply": "None"})):
            await put_policy(client, "web", {**SPOT_FIRST, **word})
            await until_policy_holds(client, f"observe-{number}", {"capacity": {"strategy": "spot-only"}})
            assert not is_marked(await create_pod(client, OPEN, is_dry_run=True))
        await put_policy(client, "web", SPOT_FIRST)
        await webhooks.until_patched()


async def test_exactly_the_rights_it_has_are_used(webhooks: Webhooks) -> None:
    granted = {
        (permission.group, permission.resource, verb)
        for permission in merge_permissions(PERMISSIONS)
        for verb in permission.verbs
    }
    account = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    used = used_by(webhooks.bed, account)
    # A Secret is patched when it is renewed: the rotation below does.
    assert granted - used <= {("", "secrets", "patch")}
    assert used <= granted


async def test_an_api_server_takes_all_that_is_printed(webhooks: Webhooks) -> None:
    """Strictly, as `kubectl apply --server-side` sends it; on a dry run, for the test has changed some of it."""
    paths = {**PATHS, **{kind: f"{CONFIGURATIONS}/{kind.lower()}s" for kind in WEBHOOK_KINDS}}
    params = {"fieldManager": "kubectl", "force": "true", "fieldValidation": "Strict", "dryRun": "All"}
    async with webhooks.bed.client() as client:
        for document in build_manifests(INSTALLATION):
            folder = paths[document["kind"]].format(document["metadata"].get("namespace", ""))
            path, kind = f"{folder}/{document['metadata']['name']}", "application/apply-patch+yaml"
            applied = json.loads(await client.send("PATCH", path, document, params=params, content_type=kind))
            if document["kind"] in WEBHOOK_KINDS:  # what the webhooks wrote there stays
                assert applied["webhooks"][0]["clientConfig"]["caBundle"]


# What goes wrong ---------------------------------------------------------------------------------------------------


async def test_a_slow_webhook_costs_two_seconds_and_no_pod(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        webhooks.signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            pods = await asyncio.gather(*(create_pod(client, OPEN) for _ in range(5)))
            assert time.monotonic() - began < 10
        finally:
            webhooks.signal(signal.SIGCONT)
        assert not any(map(is_marked, pods))
        await webhooks.until_patched()


async def test_a_webhook_that_is_killed_or_not_believed_costs_no_pod(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        wrong = take_step("create", None, ("elsewhere",), datetime.now(UTC), RotationTimes())
        bundle = base64.b64encode(wrong.bundle).decode()
        path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}"
        change = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        await client.patch(path, change, "json")
        # The API server hears of it in a moment, and keeps connections that it has.
        async with asyncio.timeout(20):
            while is_marked(await create_pod(client, OPEN, is_dry_run=True)):
                await asyncio.sleep(0.05)
        assert not is_marked(await create_pod(client, OPEN))
        webhooks.kill()
        assert not is_marked(await create_pod(client, OPEN))
        await webhooks.start()
        assert is_marked(await create_pod(client, OPEN))


async def test_another_instance_takes_over_and_no_pod_is_lost(webhooks: Webhooks) -> None:
    """Both have the certificate; whom the Service selects is a matter of the label alone."""
    second = Webhooks(webhooks.bed, webhooks.folder, SECOND_POD)
    second.kubeconfig = webhooks.kubeconfig
    pods, mutating = f"/api/v1/namespaces/{NAMESPACE}/pods", f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}"
    async with webhooks.bed.client() as client:
        second.launch()
        try:
            webhooks.kill()
            created = await asyncio.gather(*(create_pod(client, OPEN) for _ in range(10)))
            assert not any(map(is_marked, created))
            await client.wait_until(f"{pods}/{SECOND_POD}", leads)
            await client.wait_until(f"{pods}/{POD}", lambda pod: not leads(pod))
            port = [{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": second.port}]
            await client.patch(mutating, port, "json")  # what a Service does by the label
            await second.until_patched()
        finally:
            second.end()
        port[0]["value"] = webhooks.port
        await client.patch(mutating, port, "json")
    await webhooks.start()


def leads(pod: Json) -> bool:
    return bool(pod["metadata"]["labels"].get(LEADER_LABEL) == "true")


async def test_certificates_are_replaced_without_a_lost_pod(webhooks: Webhooks) -> None:
    """The authority is near its end when it starts: another is told to the API server, and then signs."""
    long_ago = datetime.now(UTC) - timedelta(days=300)
    old = take_step("create", None, (f"{NAME}.svc", f"{NAME}.svc.cluster.local"), long_ago, RotationTimes())
    old = take_step("renew", old, (f"{NAME}.svc", f"{NAME}.svc.cluster.local"), datetime.now(UTC), RotationTimes())
    webhooks.end()
    async with webhooks.bed.client() as client:
        await client.patch(SECRET, {"data": encode_keys(old)})
        await webhooks.start()
        lost = count = 0
        async with asyncio.timeout(60):
            while True:
                pods = await asyncio.gather(*(create_pod(client, OPEN, is_dry_run=True) for _ in range(5)))
                lost, count = lost + sum(not is_marked(pod) for pod in pods), count + len(pods)
                data = (await client.get(SECRET))["data"]
                if "old-ca.crt" in data and count > 200:
                    break
                await asyncio.sleep(0.02)
        assert base64.b64decode(data["old-ca.crt"]) == old.authority.certificate
        assert lost == 0
        for kind in ("mutating", "validating"):
            configuration = await client.get(f"{CONFIGURATIONS}/{kind}webhookconfigurations/{NAME}")
            bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
            assert bundle == base64.b64decode(data["ca.crt"]) + base64.b64decode(data["old-ca.crt"])
