"""A cluster whose API server asks our webhooks: what test_admission*.py and test_spot_strategy.py need.

    Webhooks      `wukong run --components admission` with exactly the rights it asks for, in a "pod" of its own
    NAMESPACE     where it is installed; OPEN and BARE are namespaces whose pods pass through it, and do not

There is no pod network on the test bed: the Service is an ExternalName, which an API server follows to this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

from live.accounts import DEADLINE_SECONDS, service_account
from live.extending import free_port, install_policies
from testbed.client import ApiError, Client
from testbed.pytest_plugin import Bed
from wukong.api.policy_parts import STRATEGIES
from wukong.app.component import list_permissions
from wukong.app.components.admission import ADMISSION, AdmissionOptions
from wukong.app.components.admission.install import (
    LEASE,
    AdmissionInstallation,
    build_mutating_configuration,
    build_validating_configuration,
)
from wukong.app.components.admission.options import SERVICE
from wukong.app.install.installation import NAMESPACE, labels_of
from wukong.controllers.admission.controller import LEADER_LABEL
from wukong.placement.pods import read_mark

OPEN, BARE = "open", "bare"
POD, SECOND_POD = "admission-1", "admission-2"
ACCOUNT = "admission"
INSTALLATION = AdmissionInstallation(image="wukong:test", components=(ADMISSION,))
OPTIONS = AdmissionOptions(service=f"{NAMESPACE}/{SERVICE}")
PERMISSIONS = list_permissions([ADMISSION], {ADMISSION.name: OPTIONS}, LEASE)
NAME = f"{SERVICE}.{NAMESPACE}"  # of the webhook configurations
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}-certificates"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"/apis/placement.novasphere.dev/v1alpha1/namespaces/{OPEN}/placementpolicies"
SPOT_FIRST = {"selector": {"matchLabels": {"app": "web"}}, "capacity": {"strategy": "spot-first"}}
Json = dict[str, Any]


class Webhooks:
    """The process, and where it listens. Started and ended by tests at will."""

    def __init__(self, bed: Bed, folder: Path, pod: str = POD) -> None:
        self.bed, self.folder, self.pod = bed, folder, pod
        self.port, self.probes = free_port(), free_port()
        self.log = folder / f"{pod}.log"
        self.kubeconfig = Path()
        self.process: subprocess.Popen[bytes] | None = None

    async def install(self) -> None:
        async with self.bed.client() as client:
            await install_policies(client)
            for name in (NAMESPACE, OPEN, BARE):
                await client.create("/api/v1/namespaces", {"metadata": {"name": name}})
            for name in (OPEN, BARE):
                await client.wait_until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda account: True)
            self.kubeconfig = await service_account(client, self.bed, NAMESPACE, ACCOUNT, PERMISSIONS, self.folder)
            await client.create(f"/api/v1/namespaces/{NAMESPACE}/services", self.service())
            for name in (POD, SECOND_POD):
                await self.create_own_pod(client, name)
            for build in (build_mutating_configuration, build_validating_configuration):
                document = self.at_this_machine(build(INSTALLATION))
                await client.create(f"{CONFIGURATIONS}/{document['kind'].lower()}s", document)

    def service(self) -> Json:
        return {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}

    def at_this_machine(self, configuration: Json) -> Json:
        """As it is printed, but for the port, and one namespace more that is left alone."""
        (webhook,) = configuration["webhooks"]
        service = {**webhook["clientConfig"]["service"], "port": self.port}
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        spared = {**expression, "values": [*expression["values"], BARE]}
        changed = {"clientConfig": {"service": service}, "namespaceSelector": {"matchExpressions": [spared]}}
        return {**configuration, "webhooks": [{**webhook, **changed}]}

    async def create_own_pod(self, client: Client, name: str) -> None:
        """What a process believes to run in. Nobody runs it: it waits for a gate."""
        spec = {"containers": [{"name": "wukong", "image": "x"}], "schedulingGates": [{"name": "test/never"}]}
        core = f"/api/v1/namespaces/{NAMESPACE}"
        await client.wait_until(f"{core}/serviceaccounts/default", lambda account: True)
        await client.create(
            f"{core}/pods", {"metadata": {"name": name, "labels": labels_of("admission")}, "spec": spec}
        )

    async def start(self, *more: str) -> None:
        """Until pods are patched: it leads, has a certificate, and the API server believes it."""
        self.launch(*more)
        await self.until_patched()

    def launch(self, *more: str) -> None:
        words = ["run", "--components", "admission", "--admission", f"127.0.0.1:{self.port}"]
        words += ["--kubeconfig", str(self.kubeconfig), "--admission-service", OPTIONS.service, "--spread-seconds", "1"]
        words += ["--lease", f"{NAMESPACE}/{LEASE}", "--lease-seconds", "4", "--probes", f"127.0.0.1:{self.probes}"]
        words += ["--answer-seconds", "20"]  # on a busy machine a late answer is one, too; API servers wait 2 seconds
        env = {**os.environ, "POD_NAME": self.pod, "POD_NAMESPACE": NAMESPACE}
        with self.log.open("ab") as output:
            argv = [sys.executable, "-m", "wukong", *words, *more]
            self.process = subprocess.Popen(argv, stdout=output, stderr=output, env=env)

    async def until_patched(self) -> None:
        async with self.bed.client() as client:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not is_marked(await create_pod(client, OPEN, is_dry_run=True)):
                    assert self.process is not None
                    assert self.process.poll() is None, self.log.read_text()
                    await asyncio.sleep(0.1)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self) -> None:
        """As a Deployment would; it must succeed."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(timeout=DEADLINE_SECONDS) == 0, self.log.read_text()
        self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None


def a_pod(name: str = "", **spec: Any) -> Json:
    """One of app=web that nobody will run."""
    labels = {"app": "web"}
    meta: Json = {"name": name, "labels": labels} if name else {"generateName": "web-", "labels": labels}
    gates = [{"name": "test/never"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "main", "image": "web"}], "schedulingGates": gates, **spec},
    }


async def create_pod(client: Client, namespace: str, pod: Json | None = None, *, is_dry_run: bool = False) -> Json:
    params = {"dryRun": "All"} if is_dry_run else None
    path = f"/api/v1/namespaces/{namespace}/pods"
    created: Json = json.loads(await client.send("POST", path, pod or a_pod(), params=params))
    return created


async def try_to_create(client: Client, namespace: str, pod: Json) -> Json | ApiError:
    """On a dry run: the pod as it would be stored, or with what it is refused."""
    try:
        return await create_pod(client, namespace, pod, is_dry_run=True)
    except ApiError as error:
        return error


def is_marked(pod: Json) -> bool:
    return read_mark(pod["metadata"].get("annotations")) is not None


def capacity_of(pod: Json) -> str:
    mark = read_mark(pod["metadata"].get("annotations"))
    return mark.capacity if mark is not None else ""


def random_rules(rng: Random) -> Json:
    """What a policy may ask of pods, some of it."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    anywhere = {**term, "namespaceSelector": {"matchLabels": {"env": "a"}}}
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    constraint: Json = {"maxSkew": 1, "topologyKey": rng.choice(["zone", "kubernetes.io/hostname"])}
    constraint["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
    capacity: Json = {"strategy": rng.choice(STRATEGIES)}
    if rng.random() < 0.5:
        capacity |= {"onDemandBase": rng.choice([0, 2, "30%"]), "spotPercent": rng.choice([0, 50, 100])}
        capacity |= {"strategy": "spot-preferred", "fallback": rng.choice(["OnDemand", "Wait"])}
    scheduling = {
        "podAntiAffinity": {"required": [term], "preferred": [{"weight": 9, "podAffinityTerm": term}]},
        "podAffinity": {"preferred": [{"weight": 1, "podAffinityTerm": rng.choice([term, anywhere])}]},
        "nodeAffinity": {"required": [zone, {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]},
        "tolerations": [{"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "topologySpreadConstraints": [constraint],
        "resourceAffinity": {"requiredResources": [{"resourceType": "memory", "minAvailable": "1Gi"}]},
    }
    rules = {
        "capacity": capacity,
        "versionAntiAffinity": {"required": True},
        "priority": {"className": rng.choice(["high", "low", "missing"])},
    }
    names = [name for name in scheduling if rng.random() < 0.5] or ["tolerations"]
    chosen = {"scheduling": {name: scheduling[name] for name in names}}
    if rng.random() < 0.2:
        return {**chosen, "critical": True}
    return {**chosen, **{name: value for name, value in rules.items() if rng.random() < 0.6}}


async def put_policy(client: Client, name: str, spec: Json) -> None:
    """Create it, or give it this spec instead of the one it has."""
    body = {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": name}}
    await client.send(
        "PATCH",
        f"{POLICIES}/{name}",
        {**body, "spec": spec},
        params={"fieldManager": "test", "force": "true"},
        content_type="application/apply-patch+yaml",
    )


def list_failures(webhooks: Webhooks) -> list[str]:
    """What the API server wrote about calls of the webhook for pods that came to nothing."""
    log = webhooks.bed.audit_log.with_name("apiserver.log").read_text()
    return re.findall(r"failing open pods\.\S+: .*", log)


@contextlib.asynccontextmanager
async def patient(client: Client) -> AsyncIterator[None]:
    """An answer for which a busy machine takes seconds counts, too: for tests that are not about time."""
    path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{NAME}"
    change: Json = {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}
    before = (await client.get(path))["webhooks"][0]["timeoutSeconds"]
    await client.patch(path, [change], "json")
    try:
        yield
    finally:
        await client.patch(path, [{**change, "value": before}], "json")


def leads(pod: Json) -> bool:
    return bool(pod["metadata"]["labels"].get(LEADER_LABEL) == "true")
