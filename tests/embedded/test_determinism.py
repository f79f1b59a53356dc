"""The same requests make the same history, byte for byte, in another process with another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from embedded.random_patches import a_map, a_patch, a_workload, an_apply
from embedded.store_fixtures import NAMESPACE, a_pod, a_running_pod, a_server, key
from small_cluster import settle
from wukong.api.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.store.documents import encode_document
from wukong.errors import ClusterError

ROOT = Path(__file__).parents[2]
KINDS = {"ConfigMap": CONFIG_MAPS, "Deployment": DEPLOYMENTS}


def a_busy_day(seed: int) -> Server:
    """Objects are made, patched, applied and deleted; owners go; the namespace goes at last."""
    random, server = Random(seed), a_server()
    for number in range(12):
        kind, name = random.choice(sorted(KINDS)), f"object-{number}"
        body = a_map(name) if kind == "ConfigMap" else a_workload(random, name)
        document = server.create(KINDS[kind], body, NAMESPACE)
        for _ in range(8):
            patch = an_apply(random, kind, name) if random.random() < 0.5 else a_patch(random, kind, document)
            try:
                document = server.patch(KINDS[kind], key(name), patch)
            except ClusterError:
                continue
        owner = {"apiVersion": document["apiVersion"], "kind": kind, "name": name, "uid": document["metadata"]["uid"]}
        for _ in range(3):
            pod = a_pod("")
            pod["metadata"] |= {"generateName": f"{name}-", "ownerReferences": [owner]}
            del pod["metadata"]["name"]
            server.create(PODS, pod, NAMESPACE)
        a_running_pod(server, f"pod-{number}", node="nowhere")
        if random.random() < 0.5:
            server.delete(KINDS[kind], key(name))
        settle(server)
    server.delete(NAMESPACES, Key("", NAMESPACE))
    settle(server)
    return server


def digest(server: Server) -> str:
    """Of everything that ever happened."""
    history = [[change.version, change.type, change.document] for kind in server.kinds for change in
            server.database.changes_since(kind.name, kind.since)]  # fmt: skip
    return sha256(encode_document(history)).hexdigest()


@pytest.mark.slow
def test_another_process_with_another_hash_seed_has_the_same_history() -> None:
    code = "from embedded.test_determinism import a_busy_day, digest; print(digest(a_busy_day(7)))"
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests", ""))
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {digest(a_busy_day(7))}


def test_another_seed_is_another_day() -> None:
    assert digest(a_busy_day(7)) != digest(a_busy_day(8))
