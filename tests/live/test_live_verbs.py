"""The verbs on a live cluster: what they say of it, and the snapshot that says the same later, without it."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from live.accounts import service_account, used_by
from testbed.pytest_plugin import Bed
from wukong.api.kinds import NODE_METRICS
from wukong.app.install.reader import build_reader
from wukong.app.permissions import Permission
from wukong.cli.verbs.capacity import command as capacity
from wukong.cli.verbs.explain import command as explain
from wukong.cli.verbs.sim_run import command as sim_run
from wukong.cli.verbs.snapshot import command as snapshot
from wukong.errors import Denied, InputError

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: probe, namespace: {namespace}, labels: {{app: probe}}}}
spec:
  containers: [{{name: c, image: probe, resources: {{requests: {{cpu: 500m}}}}}}]
"""
SECRET = "s3cr3t-of-the-house"


def run(verb: Any, *arguments: object) -> Any:
    done = CliRunner().invoke(verb, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def manifest(tmp_path: Path, namespace: str) -> Path:
    path = tmp_path / "probe.yaml"
    path.write_text(POD.format(namespace=namespace))
    return path


def test_without_a_snapshot_the_current_context_is_asked(bed: Bed, manifest: Path) -> None:
    where = ("--kubeconfig", bed.kubeconfig)
    found = json.loads(run(capacity, *where, "-f", manifest, "--max", 2, "-o", "json").stdout)
    assert found["fits"] == 2
    assert json.loads(run(explain, *where, "-f", manifest, "-o", "json").stdout)["feasible"] >= 1


async def make_chatty(bed: Bed, namespace: str) -> None:
    """A pod full of things that are nobody's business, and a secret."""
    container = {"name": "c", "image": "chatty", "args": [SECRET], "env": [{"name": "PASSWORD", "value": SECRET}]}
    pod = {
        "metadata": {"name": "chatty", "annotations": {"owner.example.com/phone": SECRET}},
        "spec": {"nodeSelector": {"there-is": "none"}, "containers": [container]},
    }
    async with bed.client() as client:
        await client.create(f"/api/v1/namespaces/{namespace}/pods", pod)
        secret = {"metadata": {"name": "s"}, "stringData": {"p": SECRET}}
        await client.create(f"/api/v1/namespaces/{namespace}/secrets", secret)


def test_a_snapshot_decides_as_the_cluster_it_was_taken_of(
    bed: Bed, namespace: str, manifest: Path, tmp_path: Path
) -> None:
    asyncio.run(make_chatty(bed, namespace))
    plain, packed = tmp_path / "cluster.json", tmp_path / "anonymous.json.gz"
    run(snapshot, "--kubeconfig", bed.kubeconfig, "-o", plain)
    run(snapshot, "--kubeconfig", bed.kubeconfig, "--anonymize", "-o", packed)
    text = plain.read_text()
    assert '"chatty"' in text
    assert SECRET not in text
    anonymous = gzip.decompress(packed.read_bytes()).decode()
    assert "chatty" not in anonymous
    assert namespace not in anonymous
    assert len(json.loads(anonymous)["items"]) > 10
    later = json.loads(run(explain, "-s", plain, "-f", manifest, "-o", "json").stdout)
    assert later["feasible"] >= 1


def test_a_cluster_that_is_not_there_is_said_in_one_sentence(manifest: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        CliRunner().invoke(
            capacity, ["--kubeconfig", str(tmp_path / "none"), "-f", str(manifest)], catch_exceptions=False
        )


async def make_account(bed: Bed, namespace: str, name: str, plurals: tuple[str, ...], folder: Path) -> Path:
    """A kubeconfig of an account that may list these kinds of the core group and no others."""
    rights = [Permission("", plural, ("get", "list", "watch")) for plural in plurals]
    async with bed.client() as client:
        return await service_account(client, bed, namespace, name, rights, folder)


def test_a_login_that_cannot_read_nodes_and_pods_leaves_the_snapshot_that_is_there(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    blind = asyncio.run(make_account(bed, namespace, "blind", ("nodes",), tmp_path))
    expired = tmp_path / "expired.kubeconfig"
    expired.write_text(re.sub(r"token: .*", "token: not-any-more", blind.read_text()))
    (tmp_path / "out").mkdir()
    kept = tmp_path / "out" / "cluster.json"
    kept.write_text("good")
    for login, message in ((blind, "pods is forbidden"), (expired, "Unauthorized")):
        with pytest.raises(Denied, match=message):
            CliRunner().invoke(snapshot, ["--kubeconfig", str(login), "-o", str(kept)], catch_exceptions=False)
        assert [(path.name, path.read_text()) for path in kept.parent.iterdir()] == [("cluster.json", "good")]
    partial = asyncio.run(make_account(bed, namespace, "partial", ("nodes", "pods"), tmp_path))
    said = run(snapshot, "--kubeconfig", partial, "-o", kept).stderr
    assert "deployments were left out: deployments.apps is forbidden" in said
    assert {item["kind"] for item in json.loads(kept.read_text())["items"]} <= {"Node", "Pod"}


def test_who_may_only_read_takes_a_whole_snapshot_and_uses_every_right(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    rules = build_reader((), (), ())[0]["rules"]
    rights = [
        Permission(rule["apiGroups"][0], plural, tuple(rule["verbs"])) for rule in rules for plural in rule["resources"]
    ]

    async def make_reader() -> Path:
        async with bed.client() as client:
            return await service_account(client, bed, namespace, "reader", rights, tmp_path)

    login = asyncio.run(make_reader())
    assert "left out" not in run(snapshot, "--kubeconfig", login, "-o", tmp_path / "cluster.json").stderr
    used = used_by(bed, f"system:serviceaccount:{namespace}:reader")
    granted = {(right.group, right.resource, verb) for right in rights for verb in right.verbs}
    assert granted - used <= {(NODE_METRICS.group, NODE_METRICS.plural, "list")}  # which no snapshot keeps
    assert used <= granted


def test_a_change_is_played_on_the_cluster_of_the_context_and_writes_nothing_there(
    bed: Bed, namespace: str, manifest: Path
) -> None:
    story = json.loads(run(sim_run, "--kubeconfig", bed.kubeconfig, "-f", manifest, "-o", "json").stdout)
    assert story["nodes"]["start"] > 0
    events = [(event["subject"], event["text"]) for event in story["timeline"]]
    assert (f"pod {namespace}/probe", "created") in events

    async def list_pods() -> list[str]:
        async with bed.client() as client:
            pods = await client.get(f"/api/v1/namespaces/{namespace}/pods")
            return [pod["metadata"]["name"] for pod in pods["items"]]

    assert asyncio.run(list_pods()) == []
