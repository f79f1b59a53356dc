"""What `wukong manifests extender` prints, on a real API server and in a real kube-scheduler."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from live.extending import install_policies
from live.kube_scheduler_process import give_name, kube_scheduler_running
from testbed import connections, nodes, processes
from testbed.client import ApiError, Client
from testbed.ports import free_ports
from testbed.programs import Programs
from testbed.pytest_plugin import Bed, HollowNodes, OwnBed
from wukong.app.component import list_permissions
from wukong.app.components.extender import EXTENDER
from wukong.app.components.policy import POLICY
from wukong.app.permissions import merge_permissions
from wukong.cli.verbs.manifests_extender import command
from wukong.placement.capacity import SPOT_LABELS

DEADLINE_SECONDS = 120.0
NAMESPACE = "wukong-system"
SECOND = ("--second-scheduler", "--scheduler-image", "kube-scheduler:test")
# As GKE has it: critical pods only where a quota names their class.
ADMISSION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}]
"""
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
Documents = list[dict[str, Any]]


# What is printed --------------------------------------------------------------------------------------------------


def printed(*words: str) -> Documents:
    argv = ["--image", "wukong:test", *words]
    done = CliRunner().invoke(command, argv, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


def the(documents: Documents, kind: str, name: str) -> dict[str, Any]:
    (found,) = [entry for entry in documents if (entry["kind"], entry["metadata"]["name"]) == (kind, name)]
    return found


def files_of(secret: dict[str, Any], folder: Path) -> Path:
    """The Secret as the kubelet would mount it."""
    folder.mkdir()
    for name, data in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(data))
    return folder


async def apply(client: Client, documents: Documents) -> None:
    """As `kubectl apply --server-side` does, strictly: a field the API server does not know is an error."""
    for document in documents:
        folder = PATHS[document["kind"]].format(document["metadata"].get("namespace", ""))
        await client.send(
            "PATCH",
            f"{folder}/{document['metadata']['name']}",
            document,
            params={"fieldManager": "test", "fieldValidation": "Strict"},
            content_type="application/apply-patch+yaml",
        )


# A server that is asked -------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    path: str
    client: str  # common name of the certificate shown, "" for none
    pod: str


@contextlib.asynccontextmanager
async def keeping_all_nodes(port: int, tls: ssl.SSLContext | None) -> AsyncIterator[list[Asked]]:
    """The least an extender can be; gives what it was asked."""
    asked: list[Asked] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        shown = request.get_extra_info("peercert") or {}
        names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
        asked.append(Asked(request.path, "".join(names), body["Pod"]["metadata"]["name"]))
        given = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]
        if request.path == "/prioritize":
            return web.json_response([{"Host": name, "Score": 1} for name in given])
        return web.json_response({"NodeNames": given} if body["NodeNames"] else {"Nodes": body["Nodes"]})

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/{verb}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    try:
        yield asked
    finally:
        await runner.cleanup()
        await connections.cut(port)


def demanding(keys: Path) -> ssl.SSLContext:
    """TLS of the extender's Secret: a client without a certificate of its authority is turned away."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=keys / "client-ca.crt")
    tls.load_cert_chain(keys / "tls.crt", keys / "tls.key")
    tls.verify_mode = ssl.CERT_REQUIRED
    return tls


async def placed(client: Client, name: str, namespace: str = "default", **spec: Any) -> str:
    """The node of a new pod."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await client.wait_until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda account: True)
    container = {"name": "c", "image": "none"}
    await client.create(pods, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}})
    found = await client.wait_until(f"{pods}/{name}", lambda pod: "nodeName" in pod["spec"], DEADLINE_SECONDS)
    return str(found["spec"]["nodeName"])


# The documents on the API server ----------------------------------------------------------------------------------


async def test_everything_applies_twice_and_pods_come_up_off_spot_and_apart(own_bed: OwnBed, tmp_path: Path) -> None:
    """Also where critical pods need leave, and with the Pod Security level that the namespace asks for."""
    (tmp_path / "admission.yaml").write_text(ADMISSION)
    flags = {"apiserver": [f"--admission-control-config-file={tmp_path / 'admission.yaml'}"]}
    bed = own_bed(nodes=2, extra_flags=flags)
    async with bed.client() as client:
        await make_spot_nodes(client)
        with pytest.raises(ApiError, match="insufficient quota to match these scopes"):
            await placed(client, "critical", priorityClassName="system-cluster-critical")
        documents = printed(*SECOND, "--cluster-ip", "10.96.0.50")
        await apply(client, documents)
        await apply(client, printed(*SECOND, "--cluster-ip", "10.96.0.50"))  # as when certificates are renewed
        for name, component in (("wukong-extender", "extender"), ("wukong-scheduler", "scheduler")):
            deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
            await client.wait_until(deployment, is_rolled_out, DEADLINE_SECONDS)
            where = await nodes_of(client, component)
            assert len(set(where)) == len(where) == 2
            assert [name for name in where if name.startswith("spot-")] == []
        await refused_when_loosened(client, the(documents, "Deployment", "wukong-extender"))
        await rights_are_exactly_those_asked_for(client)


async def make_spot_nodes(client: Client) -> None:
    """One for each way to say it, in a zone of their own: to a scheduler as good as the two others, or better."""
    said = [(label, value) for label, values in SPOT_LABELS.items() for value in values]
    names = [f"spot-{number}" for number in range(len(said))]
    zone = ("topology.kubernetes.io/zone", "spot-zone")  # nodes without one score lowest in spreading
    made = zip(names, said, strict=True)
    await nodes.create(client, [nodes.a_node(name, now=time.time(), labels=dict([zone, word])) for name, word in made])
    for name in names:
        await client.wait_until(f"/api/v1/nodes/{name}", nodes.is_usable)


def is_rolled_out(deployment: dict[str, Any]) -> bool:
    status = deployment.get("status", {})
    is_seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return is_seen and counts == [2, 2, 2]


async def nodes_of(client: Client, component: str) -> list[str]:
    """Of the pods that are not on their way out."""
    chosen = {"labelSelector": f"app.kubernetes.io/component={component}"}
    listed = await client.get(f"/api/v1/namespaces/{NAMESPACE}/pods", **chosen)
    return [pod["spec"]["nodeName"] for pod in listed["items"] if "deletionTimestamp" not in pod["metadata"]]


async def refused_when_loosened(client: Client, deployment: dict[str, Any]) -> None:
    """The same pod with one thing less strict: what admits ours is no open door."""
    template = deployment["spec"]["template"]
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    loosened: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        (
            "allowPrivilegeEscalation",
            lambda spec: spec["containers"][0]["securityContext"].pop("allowPrivilegeEscalation"),
        ),
        ("unrestricted capabilities", lambda spec: spec["containers"][0]["securityContext"].pop("capabilities")),
        ("seccompProfile", lambda spec: spec["securityContext"].pop("seccompProfile")),
        ("runAsNonRoot", lambda spec: spec["securityContext"].pop("runAsNonRoot")),
        ("host namespaces", lambda spec: spec.update(hostNetwork=True)),
    ]
    for finding, loosen in loosened:
        pod = yaml.safe_load(yaml.safe_dump({**template, "metadata": {"name": "loose"}}))
        loosen(pod["spec"])
        with pytest.raises(ApiError, match=finding) as caught:
            await client.create(pods, pod)
        assert caught.value.status == 403


async def rights_are_exactly_those_asked_for(client: Client) -> None:
    """What the API server itself says the account may do, beyond what everybody may."""
    account = f"system:serviceaccount:{NAMESPACE}:wukong-extender"
    nobody = f"system:serviceaccount:{NAMESPACE}:nobody"
    granted = await rights_of(client, account) - await rights_of(client, nobody)
    needed = merge_permissions(list_permissions([EXTENDER, POLICY]))
    assert granted == {(it.group, it.resource, verb, it.names) for it in needed for verb in it.verbs}


Right = tuple[str, str, str, tuple[str, ...]]  # group, resource, verb, names of the only objects it is about


async def rights_of(client: Client, account: str) -> set[Right]:
    assert client.session is not None
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    headers = [("Impersonate-User", account), *(("Impersonate-Group", group) for group in groups)]
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NAMESPACE}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    async with client.session.post(path, json=body, headers=headers) as response:
        status = (await response.json())["status"]
    assert not status["incomplete"]
    return {
        (group, resource, verb, tuple(rule.get("resourceNames") or ()))
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# The configuration in kube-scheduler ------------------------------------------------------------------------------


class ConfiguredScheduler(NamedTuple):
    """A kube-scheduler beside that of the shared cluster, by the test's configuration, for pods that name it."""

    bed: Bed
    programs: Programs
    namespace: str
    folder: Path

    @contextlib.asynccontextmanager
    async def running(self, configuration: str) -> AsyncIterator[Client]:
        config = give_name(yaml.safe_load(configuration), self.namespace)
        with kube_scheduler_running(self.programs, self.bed.kubeconfig, config, self.folder / "scheduler.log"):
            async with self.bed.client() as client:
                yield client

    async def place(self, client: Client, name: str) -> str:
        """The node of a new pod of the test's namespace."""
        return await placed(
            client, name, self.namespace, schedulerName=self.namespace, **nodes.on_reserved(self.namespace)
        )


@pytest.fixture
def configured_scheduler(
    bed: Bed, testbed_programs: Programs, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> ConfiguredScheduler:
    async def make_nodes() -> None:
        await hollow_nodes(2)

    asyncio.run(make_nodes())
    return ConfiguredScheduler(bed, testbed_programs, namespace, tmp_path)


async def test_a_scheduler_asks_with_its_certificate(configured_scheduler: ConfiguredScheduler, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    documents = printed("--address", f"127.0.0.1:{port}")
    keys = files_of(the(documents, "Secret", "wukong-extender-server"), tmp_path / "server")
    stored = files_of(the(documents, "Secret", "wukong-scheduler-config"), tmp_path / "config")
    configuration = (stored / "scheduler-config.yaml").read_text()
    async with keeping_all_nodes(port, demanding(keys)) as asked, configured_scheduler.running(configuration) as client:
        await configured_scheduler.place(client, "web")
        assert Asked("/filter", "wukong-extender-client", "web") in asked
        assert Asked("/prioritize", "wukong-extender-client", "web") in asked
        await strangers_are_turned_away(port, keys, asked)


async def strangers_are_turned_away(port: int, keys: Path, asked: list[Asked]) -> None:
    """Neither without a certificate nor with the server's own, which is of the same authority."""
    heard = len(asked)
    for certificate in (None, keys):
        tls = ssl.create_default_context(cafile=keys / "client-ca.crt")
        if certificate:
            tls.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(f"https://127.0.0.1:{port}/filter", json={}, ssl=tls)
    assert len(asked) == heard


async def test_a_server_of_another_authority_is_not_asked_and_pods_are_placed_all_the_same(
    configured_scheduler: ConfiguredScheduler, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    believed, other = (printed("--address", f"127.0.0.1:{port}") for _ in range(2))
    stored = files_of(the(believed, "Secret", "wukong-scheduler-config"), tmp_path / "config")
    keys = files_of(the(other, "Secret", "wukong-extender-server"), tmp_path / "server")
    configuration = (stored / "scheduler-config.yaml").read_text()
    async with keeping_all_nodes(port, demanding(keys)) as asked, configured_scheduler.running(configuration) as client:
        assert await configured_scheduler.place(client, "web")
        assert asked == []


def seed_configuration(port: int) -> str:
    """Word for word, but for the host."""
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: "http://127.0.0.1:{port}"
  filterVerb: "filter"
  prioritizeVerb: "prioritize"
  weight: 1
"""


def plain_configuration(port: int) -> str:
    documents = printed("--plain-http", "--address", f"127.0.0.1:{port}")
    return str(the(documents, "ConfigMap", "wukong-scheduler-config")["data"]["scheduler-config.yaml"])


@pytest.mark.parametrize("configuration", [seed_configuration, plain_configuration])
async def test_without_tls_the_scheduler_asks_over_plain_http(
    configured_scheduler: ConfiguredScheduler, configuration: Callable[[int], str]
) -> None:
    (port,) = free_ports(1)
    async with keeping_all_nodes(port, None) as asked, configured_scheduler.running(configuration(port)) as client:
        await configured_scheduler.place(client, "web")
        assert {Asked("/filter", "", "web"), Asked("/prioritize", "", "web")} <= set(asked)


async def test_the_second_scheduler_works_beside_the_first_with_its_own_rights(
    own_bed: OwnBed, testbed_programs: Programs, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    documents = printed(*SECOND, "--address", f"127.0.0.1:{port}")
    keys = files_of(the(documents, "Secret", "wukong-extender-server"), tmp_path / "server")
    bed = own_bed(nodes=2)
    log = tmp_path / "second.log"
    async with keeping_all_nodes(port, demanding(keys)) as asked, bed.client() as client:
        await apply(client, documents)
        account = await account_of(client, bed, "wukong-scheduler", tmp_path)
        with second_scheduler(testbed_programs, account, documents, log):
            await placed(client, "theirs")
            await placed(client, "ours", schedulerName="wukong")
            lease = await client.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/wukong-scheduler")
        assert lease["spec"]["holderIdentity"]
        assert {entry.pod for entry in asked} == {"ours"}
        assert {entry.client for entry in asked} == {"wukong-extender-client"}
        assert {entry.path for entry in asked} == {"/filter", "/prioritize"}
    assert [line for line in log.read_text().splitlines() if "forbidden" in line.lower()] == []


async def account_of(client: Client, bed: Bed, name: str, folder: Path) -> Path:
    """A kubeconfig of one of the service accounts that were applied."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
    answer = await client.create(path, {"spec": {"expirationSeconds": 3600}})
    config = yaml.safe_load(bed.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    made = folder / f"{name}.kubeconfig"
    made.write_text(yaml.safe_dump(config))
    return made


@contextlib.contextmanager
def second_scheduler(
    programs: Programs, kubeconfig: Path, documents: Documents, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The real program with the configuration of the ConfigMap; only where files lie and who it is are ours."""
    folder = log.parent
    client = files_of(the(documents, "Secret", "wukong-extender-client"), folder / "client")
    text = the(documents, "ConfigMap", "wukong-scheduler-config")["data"]["scheduler-config.yaml"]
    assert text.count("/etc/wukong/client/") == 3
    config = yaml.safe_load(text.replace("/etc/wukong/client/", f"{client}/"))
    with kube_scheduler_running(programs, kubeconfig, config, log) as process:
        yield process


# All of it together -----------------------------------------------------------------------------------------------


async def test_the_pods_command_line_keys_and_rights_serve_the_real_scheduler(own_bed: OwnBed, tmp_path: Path) -> None:
    """`wukong run` as the Deployment has it, as its service account; only where files lie and ports are ours."""
    port, probes = free_ports(2)
    documents = printed("--address", f"127.0.0.1:{port}")
    stored = files_of(the(documents, "Secret", "wukong-scheduler-config"), tmp_path / "config")
    bed = own_bed(nodes=2, scheduler_config=stored / "scheduler-config.yaml")
    log = tmp_path / "extender.log"
    async with bed.client() as client:
        await install_policies(client)
        await apply(client, [entry for entry in documents if entry["kind"] != "Deployment"])
        kubeconfig = await account_of(client, bed, "wukong-extender", tmp_path)
        keys = files_of(the(documents, "Secret", "wukong-extender-server"), tmp_path / "server")
        (container,) = the(documents, "Deployment", "wukong-extender")["spec"]["template"]["spec"]["containers"]
        words = [word.replace("/etc/wukong/extender/", f"{keys}/") for word in container["args"]]
        ours = [f"--extender=127.0.0.1:{port}", f"--probes=127.0.0.1:{probes}", f"--kubeconfig={kubeconfig}"]
        process = processes.spawn([sys.executable, "-m", "wukong", *words, *ours], log)
        try:
            await until_ready(f"http://127.0.0.1:{probes}/readyz", process, log)
            await placed(client, "web")
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{probes}/metrics") as answer:
                metrics = await answer.text()
            for verb in ("filter", "prioritize"):
                assert re.search(rf'^wukong_extender_requests_total{{.*"{verb}".*}} [1-9]', metrics, re.MULTILINE), (
                    metrics
                )
        finally:
            process.terminate()
            process.wait()
    assert "forbidden" not in log.read_text().lower()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_over_ipv6_certificates_that_expire_are_told_of_and_renewed_without_a_restart(
    own_bed: OwnBed, tmp_path: Path
) -> None:
    """The scheduler finds the extender by IPv6 alone; its Event is about the pod that its variables name."""
    port, probes = free_ports(2)
    documents = printed("--address", f"[::1]:{port}", "--cert-days", "10")
    stored = files_of(the(documents, "Secret", "wukong-scheduler-config"), tmp_path / "config")
    bed = own_bed(nodes=2, scheduler_config=stored / "scheduler-config.yaml")
    log = tmp_path / "extender.log"
    async with bed.client() as client:
        await install_policies(client)
        await apply(client, [entry for entry in documents if entry["kind"] != "Deployment"])
        kubeconfig = await account_of(client, bed, "wukong-extender", tmp_path)
        keys = files_of(the(documents, "Secret", "wukong-extender-server"), tmp_path / "server")
        (container,) = the(documents, "Deployment", "wukong-extender")["spec"]["template"]["spec"]["containers"]
        words = [word.replace("/etc/wukong/extender/", f"{keys}/") for word in container["args"]]
        words = [word.replace(":8443", f":{port}").replace(":8080", f":{probes}") for word in words]
        assert f"--extender=:{port}" in words
        assert f"--probes=:{probes}" in words
        variables = {"POD_NAME": "extender-1", "POD_NAMESPACE": NAMESPACE}
        with log.open("ab") as output:
            argv = [sys.executable, "-m", "wukong", *words, f"--kubeconfig={kubeconfig}"]
            process = subprocess.Popen(argv, stdout=output, stderr=output, env={**os.environ, **variables})
        try:
            await until_ready(f"http://[::1]:{probes}/readyz", process, log)
            await placed(client, "web")
            figures = await figures_of(f"http://[::1]:{probes}/metrics")
            assert figures["wukong_extender_requests_total"] >= 1
            left = figures["wukong_certificate_expiry_timestamp_seconds"] - time.time()
            assert 9 * 86400 < left < 10 * 86400
            event = await event_about(client, "extender-1")
            assert (event["reason"], event["type"]) == ("CertificateExpires", "Warning")
            assert "the extender's certificate expires on" in event["note"]
            renewed = printed("--address", f"[::1]:{port}", "--cert-days", "365")
            for name, data in the(renewed, "Secret", "wukong-extender-server")["data"].items():
                (keys / name).write_bytes(base64.b64decode(data))
            figures = await figures_of(f"http://[::1]:{probes}/metrics")
            assert figures["wukong_certificate_expiry_timestamp_seconds"] - time.time() > 364 * 86400
        finally:
            process.terminate()
            process.wait()
    assert process.returncode == 0, log.read_text()


async def figures_of(url: str) -> dict[str, float]:
    """The greatest value of each metric that has one."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        text = await response.text()
    figures: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            figures[sample.name] = max(sample.value, figures.get(sample.name, sample.value))
    return figures


async def event_about(client: Client, name: str) -> dict[str, Any]:
    """The Event about an object of our namespace, once it is there."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            events = await client.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
            for event in events["items"]:
                if event["regarding"]["name"] == name:
                    found: dict[str, Any] = event
                    return found
            await asyncio.sleep(0.1)


async def until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    async with aiohttp.ClientSession() as session:
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(url) as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(0.1)
