"""A real API server that asks our webhooks: pods get what policies say, and none is lost, whatever happens to us."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import signal
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from live import random_cluster
from live.accounts import DEADLINE_SECONDS, used_by
from live.admitting import (
    ACCOUNT,
    BARE,
    CONFIGURATIONS,
    INSTALLATION,
    NAME,
    OPEN,
    PERMISSIONS,
    POD,
    POLICIES,
    SECOND_POD,
    SPOT_FIRST,
    Webhooks,
    a_pod,
    capacity_of,
    create_pod,
    is_marked,
    leads,
    list_failures,
    put_policy,
    random_rules,
    try_to_create,
)
from live.extending import counted
from live.test_manifests import PATHS
from testbed.client import ApiError, Client
from wukong.app.components.admission.install import build_manifests
from wukong.app.components.admission.rotation import RotationTimes, take_step
from wukong.app.install.installation import NAMESPACE
from wukong.app.permissions import merge_permissions
from wukong.placement.pods import MARK
from wukong.replies.admission.decisions import NONCE

Json = dict[str, Any]
SEED = 20261116
TAKEOVER_SECONDS = 120.0  # on a machine with much else to do; else the lease's 4
WEBHOOK_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


async def until_policy_holds(client: Client, probe: str, spec: Json) -> None:
    """The webhook has heard of every policy so far: it obeys this one, which came last."""
    await put_policy(client, "zz-probe", {"selector": {"matchLabels": {"probe": probe}}, **spec})
    pod = a_pod()
    pod["metadata"]["labels"] = {"probe": probe}
    async with asyncio.timeout(DEADLINE_SECONDS):
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
    rng, forms, tried = random.Random(SEED), Counter[str](), 0
    refusals, patched, apart = Counter[str](), 0, 0
    async with webhooks.bed.client() as client:
        for name, value in (("high", 1000), ("low", -10)):
            await client.create(
                "/apis/scheduling.k8s.io/v1/priorityclasses", random_cluster.a_priority_class(name, value)
            )
        runtime = {"metadata": {"name": random_cluster.RUNTIME}, "handler": random_cluster.RUNTIME}
        overhead = {"overhead": {"podFixed": random_cluster.OVERHEAD}}
        await client.create("/apis/node.k8s.io/v1/runtimeclasses", {**runtime, **overhead})
        for namespace in (OPEN, BARE):
            await limit(client, namespace)
        await until_quotas_are_known(webhooks, 4)
        for number in range(6):
            if number == 5:  # now a policy may ask for what would have a pod refused
                for namespace in (OPEN, BARE):
                    cross = {"hard": {"pods": "0"}, "scopes": ["CrossNamespacePodAffinity"]}
                    await add_quota(client, namespace, "no-cross", cross)
                await until_quotas_are_known(webhooks, 6)
            for app in random_cluster.APPS:
                await put_policy(client, app, {"selector": {"matchLabels": {"app": app}}, **random_rules(rng)})
            await until_policy_holds(client, f"random-{number}", {"capacity": {"strategy": "spot-only"}})
            pods = [a_random_pod(rng, f"p-{tried + index}") for index in range(100)]
            tried += len(pods)
            pairs = await asyncio.gather(*(try_both(client, pod) for pod in pods))
            for pod, (without, with_webhook) in zip(pods, pairs, strict=True):
                forms.update(find_forms(pod["spec"]))
                if isinstance(without, ApiError) or isinstance(with_webhook, ApiError):
                    assert describe(without) == describe(with_webhook), pod
                    refusals[find_reason(without)] += 1
                    continue
                patched += is_marked(with_webhook)
                apart += is_apart_from_versions(with_webhook)
                assert_kept(without, with_webhook)
    assert tried == 600
    assert patched > 200
    assert apart > 5
    assert forms.keys() >= FORMS
    assert refusals.keys() == {"exceeded quota", "minimum memory usage", "is invalid"}, refusals


VERSION_KEYS = {
    "ReplicaSet": "pod-template-hash",
    "StatefulSet": "controller-revision-hash",
    "DaemonSet": "controller-revision-hash",
}
FORMS = {
    *("hostPort", "hostNetwork", "priorityClassName", "nodeSelector", "tolerations", "topologySpreadConstraints"),
    *("nodeAffinity required", "nodeAffinity preferred", "podAffinity required", "podAffinity preferred"),
    *("podAntiAffinity required", "podAntiAffinity preferred"),
    *("matchExpressions", "matchFields", "matchLabelKeys", "mismatchLabelKeys", "namespaces", "namespaceSelector"),
}


def find_forms(spec: Json) -> set[str]:
    """Which ways of saying where a pod shall run are in it."""
    text = json.dumps(spec)
    words = {form for form in FORMS if " " not in form and f'"{form}": ' in text and f'"{form}": ""' not in text}
    kinds = {"required": "requiredDuring", "preferred": "preferredDuring"}
    sides = (spec.get("affinity") or {}).items()
    return words | {
        f"{side} {kind}"
        for side, rules in sides
        for kind, prefix in kinds.items()
        if any(name.startswith(prefix) and terms for name, terms in rules.items())
    }


def is_apart_from_versions(pod: Json) -> bool:
    """Whether our rule is in it, and the API server has made it one about this pod's own version."""
    labels = pod["metadata"]["labels"]
    terms = (pod["spec"].get("affinity") or {}).get("podAntiAffinity", {})
    for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
        for key in {*term.get("mismatchLabelKeys", ())} & {*VERSION_KEYS.values()}:
            merged = {"key": key, "operator": "NotIn", "values": [labels[key]]}
            assert merged in term["labelSelector"]["matchExpressions"], term
            return True
    return False


def describe(answer: Json | ApiError) -> list[str]:
    """Why it was refused, word by word; nothing for a pod that was not.

    Which of two quotas is named, and the order of several mistakes, are a matter of luck.
    """
    text = re.sub("exceeded quota: .*", "exceeded quota", str(answer)) if isinstance(answer, ApiError) else ""
    return sorted(re.findall(r"[^\s,\[\]]+", text))


def find_reason(answer: Json | ApiError) -> str:
    reasons = ("exceeded quota", "minimum memory usage", "is invalid")
    return next((reason for reason in reasons if reason in str(answer)), str(answer))


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
    """Defaults and bounds for containers; so much cpu and no more; and no pod of class high: whoever gets that class by
    a policy would be refused."""
    core, high = f"/api/v1/namespaces/{namespace}", {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    limits = {"type": "Container", "defaultRequest": {"cpu": "10m"}, "default": {"memory": "2Gi"}}
    spec = {"limits": [{**limits, "min": {"memory": "100Mi"}}]}
    await client.create(f"{core}/limitranges", {"metadata": {"name": "limits"}, "spec": spec})
    scope = {"matchExpressions": [high]}
    await add_quota(client, namespace, "no-high", {"hard": {"pods": "0"}, "scopeSelector": scope})
    await add_quota(client, namespace, "room", {"hard": {"requests.cpu": "14", "count/pods": "5000"}})


async def add_quota(client: Client, namespace: str, name: str, spec: Json) -> None:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    await client.create(path, {"metadata": {"name": name}, "spec": spec})
    await client.wait_until(f"{path}/{name}", lambda quota: "hard" in quota.get("status", {}))


async def until_quotas_are_known(webhooks: Webhooks, count: int) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while await counted(webhooks.probes, "wukong_mirror_objects", kind="ResourceQuota") < count:
            await asyncio.sleep(0.05)


def a_random_pod(rng: random.Random, name: str) -> Json:
    pod = random_cluster.random_pod(rng, name, dict.fromkeys(random_cluster.NAMESPACES, "none"))
    pod["metadata"] = {"name": name, "labels": pod["metadata"]["labels"]}
    if rng.random() < 0.3:  # as its controller would make it
        kind = rng.choice([*VERSION_KEYS])
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": f"uid-{name}", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        pod["metadata"]["labels"] |= {VERSION_KEYS[kind]: f"version-{rng.choice('12')}"}
    if rng.random() < 0.1:  # one that no API server takes
        pod["spec"]["tolerations"] = [{"key": "-", "operator": "Never"}]
    return pod


async def try_both(client: Client, pod: Json) -> tuple[Json | ApiError, Json | ApiError]:
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


async def test_observe_and_none_change_nothing_and_are_counted(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        for word, outcome in (({"mode": "Observe"}, "observed"), ({"apply": "None"}, "not-applied")):
            await put_policy(client, "web", {**SPOT_FIRST, **word})
            await until_policy_holds(client, outcome, {"capacity": {"strategy": "spot-only"}})
            before = await count_answers(webhooks, outcome)
            observed, bare = [await create_pod(client, namespace, is_dry_run=True) for namespace in (OPEN, BARE)]
            assert masked(observed) == masked(bare)
            assert observed["metadata"].get("annotations") == bare["metadata"].get("annotations")
            assert await count_answers(webhooks, outcome) == before + 1
        await put_policy(client, "web", SPOT_FIRST)
        await webhooks.until_patched()


async def count_answers(webhooks: Webhooks, outcome: str) -> float:
    return await counted(webhooks.probes, "wukong_admission_requests_total", result=outcome)


async def test_an_edit_holds_for_the_next_pod_and_all_after_it(webhooks: Webhooks) -> None:
    """What the API server has stored reaches the webhook by a watch: from the first pod on that has it, all have it."""
    async with webhooks.bed.client() as client:
        for seconds in (1, 2, 3):
            toleration = {"key": "edit", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            await put_policy(client, "web", {**SPOT_FIRST, "scheduling": {"tolerations": [toleration]}})
            generation = (await client.get(f"{POLICIES}/web"))["metadata"]["generation"]
            async with asyncio.timeout(DEADLINE_SECONDS):
                while generation_of(await create_pod(client, OPEN, is_dry_run=True)) != generation:
                    await asyncio.sleep(0)
            pods = await asyncio.gather(*(create_pod(client, OPEN, is_dry_run=True) for _ in range(10)))
            assert all(generation_of(pod) == generation and toleration in pod["spec"]["tolerations"] for pod in pods)
        await put_policy(client, "web", SPOT_FIRST)


def generation_of(pod: Json) -> int:
    """Of the policy by which it was patched."""
    return int(json.loads(pod["metadata"]["annotations"][MARK])["generation"])


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
            configuration = await client.get(f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}")
            assert configuration["webhooks"][0]["timeoutSeconds"] == 2
            failures = len(list_failures(webhooks))
            pods = await asyncio.gather(*(create_pod(client, OPEN) for _ in range(5)))
            late = list_failures(webhooks)[failures:]
        finally:
            webhooks.signal(signal.SIGCONT)
        assert not any(map(is_marked, pods))
        assert len(late) == 5
        assert all("context deadline exceeded" in failure or "timeout" in failure.lower() for failure in late), late
        await webhooks.until_patched()


async def test_a_webhook_that_is_killed_or_not_believed_costs_no_pod(webhooks: Webhooks) -> None:
    async with webhooks.bed.client() as client:
        wrong = take_step("create", None, ("elsewhere",), datetime.now(UTC), RotationTimes())
        bundle = base64.b64encode(wrong.bundle).decode()
        path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}"
        change = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        await client.patch(path, change, "json")
        # The API server hears of it in a moment, and keeps connections that it has.
        async with asyncio.timeout(DEADLINE_SECONDS):
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
            await client.wait_until(f"{pods}/{SECOND_POD}", leads, TAKEOVER_SECONDS)
            await client.wait_until(f"{pods}/{POD}", lambda pod: not leads(pod), TAKEOVER_SECONDS)
            port = [{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": second.port}]
            await client.patch(mutating, port, "json")  # what a Service does by the label
            await second.until_patched()
        finally:
            second.end()
        port[0]["value"] = webhooks.port
        await client.patch(mutating, port, "json")
    await webhooks.start()
