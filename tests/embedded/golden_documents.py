"""Objects of an embedded cluster after small stories, whole: what controllers, kubelets and KubeVirt's parts write.

    PYTHONPATH=src:tests python -m embedded.golden_documents

writes tests/golden/documents anew; test_golden_documents.py compares. That the same is so on a real control plane,
tests/live and `make compare-vm` show field by field; here every field is held, so that none changes unseen.

Times, versions and who manages which field are left out, and uids are shown as the names they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, merge, scale
from embedded.actors.machine_world import a_machine_world, add_machine, launchers_of, node_of
from wukong.api.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    KINDS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    STATEFUL_SETS,
    VIRTUAL_MACHINES,
)
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.errors import ClusterError, NotFound
from wukong.ports import Document, PatchBody

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden" / "documents"
MACHINES = sorted((ROOT / "tests" / "golden" / "vm").glob("*.vm.yaml"))
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LEFT_OUT = frozenset({"resourceVersion", "managedFields"})


def play_rollout() -> World:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}
    world.server.create(POD_DISRUPTION_BUDGETS, budget, NAMESPACE)
    world.run(seconds=60)
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": a_template("app:2")}})
    world.run(seconds=60)
    scale(world, DEPLOYMENTS, 2)
    world.run(seconds=60)
    return world


def play_stalled_rollout() -> World:
    """The new version is never ready."""
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(progressDeadlineSeconds=30), NAMESPACE)
    world.run(seconds=60)
    template = a_template("app:2")
    template["spec"]["schedulerName"] = "nobody"
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": template}})
    world.run(seconds=120)
    return world


def play_stateful_set() -> World:
    world = a_world()
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
    world.server.create(STATEFUL_SETS, a_workload("db", 2, serviceName="db", volumeClaimTemplates=[claim]), NAMESPACE)
    world.run(seconds=60)
    merge(world, STATEFUL_SETS, "db", {"spec": {"template": a_template("app:2")}})
    world.run(seconds=120)
    return world


def play_daemon_set_and_job() -> World:
    world = a_world(2)
    world.server.create(DAEMON_SETS, a_workload("agent", None), NAMESPACE)
    template = a_template(**{"sim.novasphere.dev/run-seconds": "5"})
    template["metadata"]["labels"] = {"app": "batch"}
    template["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"name": "batch"}, "spec": {"completions": 3, "parallelism": 2, "template": template}}
    world.server.create(JOBS, job, NAMESPACE)
    world.run(seconds=60)
    merge(world, DAEMON_SETS, "agent", {"spec": {"template": a_template("app:2")}})
    world.run(seconds=60)
    return world


def play_lost_node() -> World:
    """A node falls silent for longer than its pods tolerate."""
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run(seconds=60)
    silent = {"metadata": {"annotations": {"sim.novasphere.dev/silent": "true"}}}
    world.server.patch(NODES, Key("", "n0"), PatchBody("merge", silent))
    world.run(seconds=600)
    return world


def play_migration() -> World:
    world = a_machine_world()
    add_machine(world)
    world.run(seconds=30)
    world.server.patch(NODES, Key("", node_of(world)), PatchBody("merge", {"spec": {"unschedulable": True}}))
    for pod in launchers_of(world):
        with suppress(ClusterError):  # KubeVirt answers so, and migrates the machine instead
            world.server.evict(Key(NAMESPACE, pod["metadata"]["name"]))
    world.run(seconds=120)
    return world


def play_stopped_machine() -> World:
    world = a_machine_world()
    add_machine(world, annotations={"sim.novasphere.dev/boot-seconds": "2"})
    world.run(seconds=30)
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Halted"}})
    world.run(seconds=120)
    return world


def play_machines() -> World:
    """Every machine that the golden pairs of Wukongs have: devices, probes, volumes, placement."""
    world = a_machine_world()
    for path in MACHINES:
        for machine in yaml.safe_load_all(path.read_text("utf-8")):
            name = f"{path.name.partition('.')[0]}-{machine['metadata']['name']}"
            meta = {"name": name, "labels": machine["metadata"].get("labels", {})}
            world.server.create(VIRTUAL_MACHINES, {"metadata": meta, "spec": machine["spec"]}, NAMESPACE)
    world.run(seconds=30)
    return world


STORIES: dict[str, Callable[[], World]] = {
    "rollout": play_rollout,
    "stalled-rollout": play_stalled_rollout,
    "stateful-set": play_stateful_set,
    "daemon-set-and-job": play_daemon_set_and_job,
    "lost-node": play_lost_node,
    "migration": play_migration,
    "stopped-machine": play_stopped_machine,
    "machines": play_machines,
}


def list_documents(world: World) -> list[Document]:
    """All objects of the kinds that controllers write, in the order of kinds and names."""
    documents = list(_list_all(world))
    owners = {document["metadata"]["uid"]: _describe(document) for document in documents}
    return [_normalize(document, owners) for document in documents]


def _list_all(world: World) -> Iterator[Document]:
    for resource in (kind.resource for kind in KINDS if kind.resource != CUSTOM_RESOURCE_DEFINITIONS):
        try:
            items = world.server.list(resource).items
        except NotFound:
            continue
        for document in sorted(
            items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        ):
            yield {"kind": resource.kind, **document}


def _describe(document: Document) -> str:
    return f"uid of {document['kind']} {document['metadata']['name']}"


def _normalize(value: Any, owners: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            _normalize(name, owners): _normalize(entry, owners)
            for name, entry in value.items()
            if name not in _LEFT_OUT
        }
    if isinstance(value, list):
        return [_normalize(entry, owners) for entry in value]
    if isinstance(value, str):
        return _TIME.sub("a time", _UID.sub(lambda match: owners.get(match[0], "uid of one gone"), value))
    return value


def write(documents: list[Document]) -> str:
    return yaml.dump_all(documents, sort_keys=True, width=110, allow_unicode=True, Dumper=_Dumper)


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, play in STORIES.items():
        (FOLDER / f"{name}.yaml").write_text(write(list_documents(play())), "utf-8")
