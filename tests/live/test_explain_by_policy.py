"""What `wukong explain` and `capacity` foretell by policy is what a real kube-scheduler with our extender does."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from live.extending import (
    POLICY,
    Extended,
    ExtendedCluster,
    extender_running,
    free_port,
    scene_beside,
    scheduler_config,
)
from testbed.client import Client
from testbed.programs import Programs
from testbed.pytest_plugin import Bed
from wukong.cli.verbs.capacity import command as capacity
from wukong.cli.verbs.explain import command as explain
from wukong.cli.verbs.snapshot import command as snapshot
from wukong.placement.leaving_nodes import NOTICE

pytestmark = pytest.mark.slow
POLICIES = "/apis/placement.novasphere.dev/v1alpha1/namespaces/default/placementpolicies"
HEAD = {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "PlacementPolicy"}
PODS = "/api/v1/namespaces/default/pods"


class Foreteller:
    """Explains a pod on the live cluster before it is made."""

    def __init__(self, bed: Bed, config: Path, folder: Path) -> None:
        self._bed, self._config = bed, config
        self._path = folder / "asked.yaml"

    async def snapshot(self, path: Path) -> None:
        words = ["--kubeconfig", str(self._bed.kubeconfig), "-o", str(path)]
        done = await asyncio.to_thread(CliRunner().invoke, snapshot, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output

    async def explain(self, app: str, cpu: str = "100m", on: Path | None = None, **spec: Any) -> Any:
        """`on`: a snapshot to ask instead of the cluster."""
        return await self._ask(explain, app, cpu, on, spec)

    async def count(self, app: str, cpu: str) -> Any:
        """How many more such pods fit."""
        return await self._ask(capacity, app, cpu, None, {})

    async def _ask(self, verb: click.Command, app: str, cpu: str, on: Path | None, spec: dict[str, Any]) -> Any:
        resources = {"requests": {"cpu": cpu}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": app, "namespace": "default", "labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": "web", "resources": resources}], **spec},
        }
        self._path.write_text(yaml.safe_dump(pod))
        where = ("--kubeconfig", str(self._bed.kubeconfig)) if on is None else ("-s", str(on))
        words = [*where, "--scheduler-config", str(self._config), "-f", str(self._path), "-o", "json"]
        done = await asyncio.to_thread(CliRunner().invoke, verb, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


def policy(app: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}


def floor(cpu: str) -> dict[str, Any]:
    return {"resourceAffinity": {"requiredResources": [{"resourceType": "cpu", "minAvailable": cpu}]}}


def rules(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"scheduling": {"schedulingPolicy": {"rules": list(entries), **more}}}


WANTED = [
    policy("spot-first", capacity={"strategy": "spot-first"}),
    policy("on-demand", capacity={"strategy": "on-demand-only"}),
    policy("zone-b", **rules({"name": "label-match", "type": "score", "config": {"matchLabels": {"zone": "b"}}})),
    policy("nowhere", **rules({"name": "label-match", "type": "filter", "config": {"matchLabels": {"zone": "x"}}})),
    policy("roomy", scheduling=floor("5")),
    policy("polite", **rules(preemptionPolicy="Never")),
]


# The pod, what it asks for, and the words by which the scheduler shows that it asked the extender.
STUCK: list[tuple[str, str, dict[str, Any], str]] = [
    ("nowhere", "100m", {}, "3 rule label-match: labels do not match (PlacementPolicy default/nowhere)"),
    ("roomy", "100m", {}, "3 less than cpu 5 free (PlacementPolicy default/roomy)"),
    ("polite", "2", {"nodeSelector": {"zone": "b"}}, "preemption: no candidate node for preemption"),
]


async def words_about(client: Client, name: str) -> str:
    """What the scheduler says of a pod it cannot place."""
    found = await client.wait_until(f"{PODS}/{name}", lambda pod: bool(_refusal(pod)))
    return _refusal(found)


def _refusal(pod: Any) -> str:
    conditions = pod.get("status", {}).get("conditions") or []
    return next((str(entry["message"]) for entry in conditions if entry.get("reason") == "Unschedulable"), "")


async def test_explain_foretells_what_a_scheduler_with_our_extender_does(
    extended: Extended, testbed_programs: Programs, tmp_path: Path
) -> None:
    port = free_port()
    config = scheduler_config(tmp_path, port)
    foretell = Foreteller(extended.bed, config, tmp_path)
    with extender_running(extended.bed.kubeconfig, port, tmp_path / "extender.log"):
        async with scene_beside(extended, testbed_programs, config, port) as here:
            await furnish_with_policies(here)
            await fill_by_policy(here, foretell)
            low = await here.priority("low", -5)
            await here.place("old", cpu="3", nodeSelector={"zone": "b"}, priorityClassName=low)
            for app in ("spot-first", "on-demand", "zone-b"):
                foretold = await foretell.explain(app)
                assert foretold["policy"]["name"] == f"PlacementPolicy default/{app}"
                best = [name for group in foretold["groups"] if group["best"] for name in group["nodes"]]
                assert here.full(await here.place(app, labels={"app": app})) in best, foretold
            for app, cpu, spec, said in STUCK:
                foretold = await foretell.explain(app, cpu, **spec)
                assert said in foretold["message"]
                await here.make(app, cpu=cpu, labels={"app": app}, **spec)
                assert await words_about(here.client, app) == foretold["message"]
            await here.change("od-a", {"metadata": {"annotations": {NOTICE: "soon"}}})
            await foretell.snapshot(tmp_path / "cluster.json")
            foretold = await foretell.explain("on-demand")
            assert foretold["winner"] == here.full("od-b")  # the other is leaving
            assert foretold == await foretell.explain("on-demand", on=tmp_path / "cluster.json")
            assert await here.node_of("spot-first") == "spot-a"


async def fill_by_policy(here: ExtendedCluster, foretell: Foreteller) -> None:
    """As many pods as `wukong capacity` counts are placed, where it says, and the next one waits for what it says."""
    counted = await foretell.count("on-demand", "1500m")
    assert here.full("spot-a") not in counted["perNode"], "the policy takes none of the spot node, which has room"
    names = [f"more-{number}" for number in range(counted["fits"])]
    placed = [await here.place(name, cpu="1500m", labels={"app": "on-demand"}) for name in names]
    assert Counter(map(here.full, placed)) == counted["perNode"]
    await here.make("one-more", cpu="1500m", labels={"app": "on-demand"})
    assert await words_about(here.client, "one-more") == counted["reason"]
    for name in (*names, "one-more"):
        await here.client.delete(f"{PODS}/{name}", grace_seconds=0)
        await here.client.wait_until_gone(f"{PODS}/{name}")
    await here.settle()


async def furnish_with_policies(here: ExtendedCluster) -> None:
    for wanted in WANTED:
        here.policies.add((POLICY, wanted["metadata"]["name"]))
        await here.client.create(POLICIES, {**HEAD, **wanted})
    for kind, name, zone in (("on-demand", "od-a", "a"), ("on-demand", "od-b", "b"), ("spot", "spot-a", "a")):
        await here.nodes(kind, name, labels={"zone": zone}, capacity={"cpu": "4"})
