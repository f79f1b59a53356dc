"""The control plane itself: how soon it is up, that it is the real one, that it survives a crash of its API server."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from testbed import nodes
from testbed.build import kubernetes_version
from testbed.client import Client
from testbed.control_plane import Addition
from testbed.errors import TestbedError
from testbed.kubelet import Kubelets
from testbed.ports import free_ports
from testbed.pytest_plugin import NODES, Bed, OwnBed, OwnControlPlane

Record = Callable[[str, object], None]


async def test_it_is_the_version_that_was_built_with_a_lease_for_each_node(bed: Bed, record_property: Record) -> None:
    record_property("figure", f"real control plane with {NODES} hollow nodes: up in {bed.up_seconds:.1f} s")
    async with bed.client() as client:
        version = (await client.get("/version"))["gitVersion"]
        for i in range(NODES):
            await client.wait_until(f"{nodes.LEASES}/node-{i}", lambda lease: "renewTime" in lease["spec"])
    assert version == kubernetes_version() or "KUBEBUILDER_ASSETS" in os.environ


async def test_an_api_server_that_was_killed_comes_back_with_its_data(own_control_plane: OwnControlPlane) -> None:
    with own_control_plane() as plane:
        async with Client.of(plane.kubeconfig) as client:
            made = await client.create("/api/v1/namespaces", {"metadata": {"name": "before"}})
            plane.restart("apiserver")
            found = await client.get("/api/v1/namespaces/before")
            assert found["metadata"]["uid"] == made["metadata"]["uid"]
            # The controllers are back at work, too.
            await client.create("/api/v1/namespaces", {"metadata": {"name": "after"}})
            await client.wait_until("/api/v1/namespaces/after/serviceaccounts/default", lambda account: True)


async def test_hollow_kubelets_go_on_when_the_api_server_was_killed(own_control_plane: OwnControlPlane) -> None:
    pods = "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "main", "image": "web:1"}]}
    with own_control_plane() as plane:
        async with Client.of(plane.kubeconfig) as client, asyncio.TaskGroup() as group:
            kubelets = group.create_task(Kubelets(client).run())
            await nodes.create(client, nodes.spread_nodes(1, time.time()))
            for name in ("before", "after"):
                async with Client.of(plane.kubeconfig) as ours:  # a POST on a connection that died is not sent again
                    await ours.create(pods, {"metadata": {"name": name}, "spec": spec})
                    await ours.wait_until(f"{pods}/{name}", lambda pod: pod["status"]["phase"] == "Running")
                plane.restart("apiserver")
            await client.delete(f"{pods}/before")
            await client.wait_until_gone(f"{pods}/before")
            kubelets.cancel()


async def test_every_write_is_in_the_audit_log_with_who_made_it(bed: Bed, namespace: str) -> None:
    lines = [json.loads(line) for line in bed.audit_log.read_text().splitlines()]
    made = [line["user"]["username"] for line in lines if line.get("objectRef", {}).get("name") == namespace]
    assert made[0] == "wukong-testbed-admin"
    others = [line for line in lines if not line["user"]["username"].startswith("system:serviceaccount:")]
    assert {line["verb"] for line in others} <= {"create", "update", "patch", "delete", "deletecollection"}


def test_a_component_that_cannot_start_says_why(own_control_plane: OwnControlPlane) -> None:
    plane = own_control_plane(extra_flags={"etcd": ["--name=another"]})
    with pytest.raises(TestbedError, match=r"(?s)etcd ended with 1 before it was ready.*another"):
        plane.start()
    assert plane.running == {}


SLOW_STARTER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Handler.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"leading" if Handler.asked > 2 else b"waiting")

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_an_addition_is_ready_when_it_says_the_words(own_control_plane: OwnControlPlane) -> None:
    plane, (port,) = own_control_plane(), free_ports(1)
    plane.layout.logs.mkdir(parents=True)
    url = f"http://127.0.0.1:{port}/"
    plane.additions["helper"] = Addition([sys.executable, "-c", SLOW_STARTER, str(port)], url, b"leading")
    plane.launch("helper")
    plane.await_ready("helper")
    assert plane.log("helper").read_text().count("GET /") == 3
    helper = plane.running["helper"]
    plane.stop()
    assert helper.poll() is not None


def test_an_addition_that_cannot_start_says_why(own_control_plane: OwnControlPlane) -> None:
    plane = own_control_plane()
    plane.layout.logs.mkdir(parents=True)
    plane.additions["helper"] = Addition([sys.executable, "-c", "raise SystemExit('no disk')"], "http://127.0.0.1:1/")
    plane.launch("helper")
    with pytest.raises(TestbedError, match=r"(?s)helper ended with 1 before it was ready.*no disk"):
        plane.await_ready("helper")


async def test_a_cluster_of_ones_own_has_the_scheduler_that_was_asked_for(own_bed: OwnBed, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(yaml.safe_dump({**kind, "profiles": [{"schedulerName": "ours"}]}))
    pods = "/api/v1/namespaces/default/pods"
    spec = {"schedulerName": "ours", "containers": [{"name": "main", "image": "web:1"}]}
    async with own_bed(nodes=2, scheduler_config=config).client() as client:
        await client.create(pods, {"metadata": {"name": "web"}, "spec": spec})
        bound = await client.wait_until(f"{pods}/web", lambda pod: "nodeName" in pod["spec"])
    assert bound["spec"]["nodeName"] in ("node-0", "node-1")
