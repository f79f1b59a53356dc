"""`wukong sim run -s SNAPSHOT -f change.yaml` where a quota, a limit range, pod security or an autoscaler has a say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cli.conftest import Wukong

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = yaml.load((EXAMPLES / "cluster.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
ENFORCE = "pod-security.kubernetes.io/enforce"


def write(path: str, document: object) -> str:
    Path(path).write_text(yaml.safe_dump(document), "utf-8")
    return path


def a_snapshot(*more: dict[str, Any], **head: object) -> str:
    items = [item for item in CLUSTER["items"] if (item["kind"], item["metadata"]["name"]) != ("Namespace", "shop")]
    return write("cluster.yaml", {**CLUSTER, **head, "items": [*items, *more]})


def a_quota(**hard: str) -> dict[str, Any]:
    meta = {"name": "team", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def a_namespace(level: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {ENFORCE: level}}}


def test_a_quota_of_the_snapshot_stops_a_change_and_is_named(wukong: Wukong) -> None:
    snapshot = a_snapshot(a_namespace("privileged"), a_quota(pods="1"))
    run = wukong("sim", "run", "-s", snapshot, "-f", EXAMPLES / "web.yaml")
    assert run.code == 1
    assert "exceeded quota: team, requested: pods=1, used: pods=" in run.out


def test_a_whole_snapshot_tells_what_pod_security_refuses(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", a_snapshot(a_namespace("restricted")), "-f", EXAMPLES / "web.yaml")
    assert run.code == 1
    assert 'violates PodSecurity "restricted:latest"' in run.out


def test_a_reduced_snapshot_says_that_it_cannot_tell(wukong: Wukong) -> None:
    snapshot = a_snapshot(a_namespace("restricted"), wukongSnapshot={"version": 1})
    run = wukong("sim", "run", "-s", snapshot, "-f", write("change.yaml", a_quota(pods="100")))
    assert run.code == 0
    assert any("whether Pod Security Standards refuse new pods in shop is not known" in note for note in run.notes)


def test_what_is_not_modelled_is_not_called_irrelevant(wukong: Wukong) -> None:
    change = write(
        "change.yaml",
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}},
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
                a_quota(pods="100"),
            ],
        },
    )
    run = wukong("sim", "run", "-s", a_snapshot(), "-f", change)
    assert "note: left out of the files, for they do not decide placement: ConfigMap." in run.notes
    assert any("not modelled, though pods may depend on them: RuntimeClass." in note for note in run.notes)
