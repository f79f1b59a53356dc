"""One hour of sickness: all components in an embedded cluster, every type of fault, and a tenant who writes anything.

    python -m hostile.sickness --seeds 1-500      `make sickness`; prints a table, ends with 1 if something was wrong

Each seed is a world of its own: nodes come and go, workloads roll out, meters report usage, and meanwhile the faults
of embedded/faults strike everybody, and a tenant creates, changes and deletes hostile objects in his namespace: what
the API server takes of the grammar beside this, of every kind that has a namespace. Judged from outside: nothing may
raise (an exit of `wukong run`), the checkers must find nothing, our components may write only what write_judge.py
lists, and in the end the neighbours' workloads and virtual machine are complete and their policies still hold.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import yaml

from hostile.grammar import OWN_NODES, Grammar, read_back
from hostile.write_judge import WriteJudge
from wukong.api.core import Node
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS
from wukong.api.placement import PlacementPolicy
from wukong.api.resources import Key
from wukong.api.rollout import Rollout
from wukong.api.vm import Wukong
from wukong.app.component_choice import EMBEDDED_COMPONENTS
from wukong.app.embedded import Settings, build_world, choose_components, faults_of
from wukong.app.many_seeds import play_seeds
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Scenario, Story, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.world import World
from wukong.errors import ClusterError
from wukong.ports import PatchBody

HOUR = 3600
LAST_ACT = 3000  # seconds; then the tenant removes what is left of his
ACTS = 150  # of the tenant in that time
MOST_REPLICAS = 4  # his quota
NAMESPACE = "evil"
PODS_OF_A_KIND = ("Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicationController")
POLICY = "PlacementPolicy.placement.novasphere.dev"
WUKONG = "Wukong.vm.novasphere.dev"
MACHINE, INSTANCE = "VirtualMachine.kubevirt.io", "VirtualMachineInstance.kubevirt.io"
MIGRATION = "VirtualMachineInstanceMigration.kubevirt.io"
ROLLOUT = "Rollout.placement.novasphere.dev"
EVERY_KIND = tuple(kind.group_kind for kind in KINDS if kind.resource.namespaced)
DRAWN = (*EVERY_KIND, *("Pod",) * 6, *(POLICY,) * 6, *(WUKONG,) * 5, *(ROLLOUT,) * 4, *PODS_OF_A_KIND, MACHINE)
SCENARIO = """
nodes:
  - {namePrefix: s, count: 4, spot: true, capacity: {cpu: 8, memory: 16Gi, pods: 60}}
  - {namePrefix: d, count: 3, capacity: {cpu: 8, memory: 16Gi, pods: 60}}
manifests:
  - {apiVersion: v1, kind: Namespace, metadata: {name: evil}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: web}
    spec:
      selector: {matchLabels: {app: web}}
      capacity: {strategy: spot-first, onDemandBase: 1}
      priority: {value: 100}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: db}
    spec:
      selector: {matchLabels: {app: db}}
      capacity: {strategy: on-demand-first}
      disruption: {maxUnavailable: 1}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 4
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web}
    spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 2
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: db, image: "db:1", resources: {requests: {cpu: 500m}}}]}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: own}
    spec:
      replicas: 2
      selector: {matchLabels: {app: own}}
      template:
        metadata: {labels: {app: own}}
        spec:
          schedulerName: wukong-scheduler
          containers: [{name: own, image: "own:1", resources: {requests: {cpu: 500m}}}]
  - {apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: shop}, ports: [{port: 80}]}}
  - {apiVersion: v1, kind: Service, metadata: {name: shop-new}, spec: {selector: {app: shop}, ports: [{port: 80}]}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: Rollout
    metadata: {name: shop}
    spec:
      replicas: 2
      selector: {matchLabels: {app: shop}}
      template:
        metadata: {labels: {app: shop}}
        spec: {containers: [{name: shop, image: "shop:1", resources: {requests: {cpu: 500m}}}]}
      strategy:
        blueGreen:
          activeService: shop
          previewService: shop-new
          antiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: {weight: 1}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: Rollout
    metadata: {name: search}
    spec:
      replicas: 2
      selector: {matchLabels: {app: search}}
      template:
        metadata: {labels: {app: search}}
        spec: {containers: [{name: search, image: "search:1", resources: {requests: {cpu: 500m}}}]}
      strategy: {canary: {steps: [{setWeight: 50}, {pause: {duration: 20s}}]}}
  - apiVersion: vm.novasphere.dev/v1alpha1
    kind: Wukong
    metadata: {name: machine}
    spec:
      restartPolicy: WhenSafe
      disks: [{name: root, containerDisk: {image: "registry.example/machine:1"}}]
      scheduling: {schedulingPolicy: {priority: 100, schedulerName: wukong-scheduler}}
until: 6h
"""
NEIGHBOURS = ("web", "db", "own", "machine", "shop", "search")  # whose pods are complete in the end


class Sickness(msgspec.Struct, kw_only=True):
    """What came of one seed."""

    seed: int
    digest: str = ""
    writes: int = 0
    faults: dict[str, int] = {}
    accepted: int = 0  # hostile objects and changes that the API server took
    kinds: dict[str, int] = {}  # of the objects that it took
    own_writes: dict[str, int] = {}  # by each of our controllers
    refused: int = 0
    exits: list[str] = []
    wrong: list[str] = []  # what checkers found, what we should not have written, and neighbours who suffered for good


def a_scenario() -> Scenario:
    """An hour of rollouts, scaling and usage, with every component that can be named."""
    document = yaml.safe_load(SCENARIO)
    document["components"] = [*EMBEDDED_COMPONENTS]
    document["timeline"] = [entry for minute in range(2, 60) for entry in list_entries(minute)]
    return read_scenario(msgspec.json.encode(document))


def list_entries(minute: int) -> list[dict[str, Any]]:
    at = f"{minute}m"
    usage = {"node": f"{'sd'[minute % 2]}{1 + minute % 3}", "cpu": (minute * 37) % 100, "memory": (minute * 13) % 100}
    entries: list[dict[str, Any]] = [{"at": at, "usage": usage}]
    if minute % 15 == 5:
        containers = [{"name": "web", "image": f"web:{minute}"}]
        patch: dict[str, Any] = {"spec": {"template": {"spec": {"containers": containers}}}}
        entries.append({"at": at, "patch": {"kind": "Deployment", "name": "web", "patch": patch}})
    if minute % 25 == 9:
        patch = {"spec": {"cpu": 1 + minute // 25 % 2}}
        entries.append({"at": at, "patch": {"kind": "Wukong", "name": "machine", "type": "merge", "patch": patch}})
    for name, when in (("shop", 8), ("search", 14)):
        if minute % 16 == when:
            image = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": f"{name}:{minute}"}
            entries.append({"at": at, "patch": {"kind": "Rollout", "name": name, "type": "json", "patch": [image]}})
    if minute % 20 == 7:
        entries.append({"at": at, "scale": {"kind": "StatefulSet", "name": "db", "replicas": 2 + minute % 2}})
    return entries


class Tenant:
    """Writes hostile objects into his namespace at moments drawn beforehand, changes and deletes them."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.rng = world, random.Random(seed)
        self.grammar = Grammar(self.rng)
        self.accepted = self.refused = 0
        self.kinds: Counter[str] = Counter()
        self._own: dict[tuple[str, str], None] = {}  # group and kind, name
        start = world.clock.now()
        for number in range(ACTS):
            world.timers.add(start + self.rng.uniform(5, LAST_ACT), partial(self._act, number))
        for again in range(4):
            world.timers.add(start + LAST_ACT + 30 * again, self._remove_all)

    def _act(self, number: int) -> None:
        which = self.rng.random()
        # Checkers cannot tell that a pod is outdated by a template which only lacks what the pod has.
        changeable = [own for own in self._own if own[0] not in ("StatefulSet.apps", "DaemonSet.apps")]
        if changeable and which < 0.2:
            self._write(partial(self._patch, self.rng.choice(changeable)))
        elif self._own and which < 0.4:
            self._delete(self.rng.choice([*self._own]))
        else:
            kind = KINDS[self.rng.choice(DRAWN)]
            document = self._draw(kind, f"evil-{number}")
            if isinstance(document, dict):
                self._write(partial(self._create, kind, document))

    def _draw(self, kind: Kind, name: str) -> Any:
        document = read_back(self.grammar.build_document(kind, name))
        if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
            document["metadata"]["namespace"] = NAMESPACE
            document["metadata"].pop("resourceVersion", None)
            if self.rng.random() < 0.7:  # or hardly a policy or Wukong would be taken: their schema allows no null
                document = without_nulls(document)
                for field in ("ownerReferences", "finalizers"):
                    document["metadata"].pop(field, None)
            if isinstance(spec := document.get("spec"), dict):
                self._complete(kind.group_kind, spec)
        return document

    def _complete(self, group_kind: str, spec: dict[str, Any]) -> None:
        """Most of them get what the API server asks for, or it would take nearly none; and none goes over his quota."""
        for field in ("replicas", "parallelism", "completions"):
            if isinstance(spec.get(field), int):
                spec[field] = min(max(spec[field], 0), MOST_REPLICAS)
        if self.rng.random() < 0.2:
            return
        if group_kind == "Pod":
            self._complete_pod(spec)
        elif group_kind in PODS_OF_A_KIND or group_kind == "Job.batch":
            self._complete_workload(group_kind, spec)
        elif group_kind == POLICY:
            self._complete_policy(spec)
        elif group_kind == WUKONG:
            self._complete_wukong(spec)
        elif group_kind == ROLLOUT:
            self._complete_rollout(spec)
        elif group_kind in (MACHINE, INSTANCE):
            self._complete_machine(group_kind, spec)
        elif group_kind == MIGRATION:
            machines = [name for own_kind, name in self._own if own_kind in (MACHINE, INSTANCE)]
            spec["vmiName"] = self.rng.choice([*machines, "machine"])  # that of the neighbours is in another namespace

    def _complete_workload(self, group_kind: str, spec: dict[str, Any]) -> None:
        labels = {"app": "evil"}
        spec["selector"] = labels if group_kind == "ReplicationController" else {"matchLabels": labels}
        template = spec["template"] if isinstance(spec.get("template"), dict) else {}
        pod_spec = template.get("spec")
        spec["template"] = {
            "metadata": {"labels": labels},
            "spec": self._complete_pod(pod_spec if isinstance(pod_spec, dict) else {}),
        }
        if group_kind == "Job.batch":
            del spec["selector"]
            spec["template"]["spec"]["restartPolicy"] = "Never"

    def _complete_policy(self, spec: dict[str, Any]) -> None:
        """One or two fields of what is drawn, a rule nested about as deep as may be, or shares and a budget."""
        selector = self.rng.choice(({}, {"matchLabels": {"app": "evil"}}, {"matchLabels": {"app": "web"}}))
        kept = self.rng.sample([*spec], min(len(spec), self.rng.randrange(3)))
        completed = {"selector": selector, **{name: spec[name] for name in kept}}
        which = self.rng.randrange(3)
        if which == 0:
            config: Any = 1
            for _ in range(self.rng.choice((3, 15, 17, 40, 90))):
                config = {"a": config}
            rule = {"name": "label-match", "type": "filter", "config": {"b": config}}
            completed["scheduling"] = {"schedulingPolicy": {"rules": [rule]}}
        elif which == 1:
            completed["capacity"] = {"strategy": self.rng.choice(("spot-first", "spot-preferred")), "spotPercent": 50}
            completed["disruption"] = self.rng.choice(({"maxUnavailable": 0}, {"minAvailable": "100%"}))
            completed["priority"] = {"value": self.rng.choice((1, 100, 1_000_000))}
        spec.clear()
        spec.update(completed)

    def _complete_wukong(self, spec: dict[str, Any]) -> None:
        """Of what is drawn a few fields; small enough that some of them run, and not more than his quota."""
        kept = self.rng.sample([*spec], min(len(spec), self.rng.randrange(4)))
        completed = {name: spec[name] for name in kept if name not in ("cpu", "memory", "disks")}
        completed["memory"] = self.rng.choice(("64Mi", "1Gi", "8Ei"))
        completed["disks"] = [{"name": "root", "containerDisk": {"image": "x"}}]
        spec.clear()
        spec.update(completed)

    def _complete_rollout(self, spec: dict[str, Any]) -> None:
        """A strategy that could be meant, over Services that may be the neighbours' by name, and numbers as drawn."""
        service = self.rng.choice(("shop", "evil", *(name for kind, name in self._own if kind == "Service")))
        step = self.rng.choice(({"setWeight": 100}, {"setReplicas": MOST_REPLICAS}, {"pause": {"duration": "1s"}}))
        canary = {"steps": [step] * self.rng.choice((0, 1, 64)), "maxSurge": self.rng.choice((0, 1, "100%", 100_000))}
        kept = self.rng.sample([*spec], min(len(spec), self.rng.randrange(3)))
        completed = {name: spec[name] for name in kept}
        completed["replicas"] = self.rng.randrange(MOST_REPLICAS + 1)
        completed["strategy"] = self.rng.choice(({"blueGreen": {"activeService": service}}, {"canary": canary}))
        completed["template"] = spec.get("template")
        spec.clear()
        spec.update(completed)
        self._complete_workload(ROLLOUT, spec)

    def _complete_machine(self, group_kind: str, spec: dict[str, Any]) -> None:
        instance: dict[str, Any] = {"domain": {"devices": {}, "memory": {"guest": self.rng.choice(("64Mi", "8Ei"))}}}
        if self.rng.random() < 0.5:
            instance |= {"nodeSelector": {"kubernetes.io/hostname": self.rng.choice(("s1", *OWN_NODES))}}
        kept = self.rng.sample([*spec], min(len(spec), self.rng.randrange(3)))
        completed = {name: spec[name] for name in kept}
        if group_kind == INSTANCE:
            completed |= instance
        else:
            completed["runStrategy"] = self.rng.choice(("Always", "Halted", "Manual", "RerunOnFailure", "Once"))
            completed["template"] = {"metadata": {"labels": {"app": "evil"}}, "spec": instance}
        spec.clear()
        spec.update(completed)

    def _complete_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """One container, and of the rest the fields that are drawn; some are bound by the tenant himself."""
        amounts = {"cpu": self.rng.choice(("10m", "1", "9E", "8Ei", "1e30")), "memory": self.rng.choice(("1Mi", "8Ei"))}
        requests = self.rng.choice(({}, {"cpu": "10m"}, amounts))
        kept = self.rng.sample([*spec], min(len(spec), self.rng.randrange(4)))
        node_names = ("", *(f"{letter}{number}" for letter in "sd" for number in (1, 2, 3)), *OWN_NODES)
        completed = {name: spec[name] for name in kept if name not in ("containers", "nodeName", "schedulingGates")}
        completed["containers"] = [{"name": "main", "image": "x", "resources": {"requests": requests}}]
        if self.rng.random() < 0.4 and (node := self.rng.choice(node_names)):
            completed["nodeName"] = node
        spec.clear()
        spec.update(completed)
        return spec

    def _create(self, kind: Kind, document: dict[str, Any]) -> None:
        created = self.world.server.create(kind.resource, document, NAMESPACE)
        self._own[kind.group_kind, created["metadata"]["name"]] = None
        self.kinds[kind.group_kind] += 1

    def _patch(self, own: tuple[str, str]) -> None:
        kind = KINDS[own[0]]
        document = self._draw(kind, own[1])
        if isinstance(document, dict):
            parts = {name: value for name, value in document.items() if name in ("spec", "status")}
            has_status = kind.has_status and own[0] != "Pod"  # which no tenant may write: only kubelets tell of pods
            subresource = self.rng.choice(("", "", "status")) if has_status else ""
            patch = PatchBody("merge", parts)
            self.world.server.patch(kind.resource, Key(NAMESPACE, own[1]), patch, subresource)

    def _write(self, write: partial[None]) -> None:
        try:
            write()
            self.accepted += 1
        except ClusterError:
            self.refused += 1

    def _delete(self, own: tuple[str, str]) -> None:
        del self._own[own]
        with suppress(ClusterError):
            self.world.server.delete(KINDS[own[0]].resource, Key(NAMESPACE, own[1]))

    def _remove_all(self) -> None:
        for own in [*self._own]:
            self._delete(own)
        owners = (WUKONG, ROLLOUT, MACHINE, *PODS_OF_A_KIND, "Job.batch")
        for group_kind in dict.fromkeys((*owners, *EVERY_KIND)):  # what his objects have made, and what is stuck
            resource = KINDS[group_kind].resource
            for document in self.world.server.list(resource).items:
                meta = document["metadata"]
                if meta["namespace"] == NAMESPACE:
                    key, no_finalizers = (
                        Key(NAMESPACE, meta["name"]),
                        PatchBody("merge", {"metadata": {"finalizers": None}}),
                    )
                    with suppress(ClusterError):  # it went with the one before
                        if meta.get("finalizers"):
                            self.world.server.patch(resource, key, no_finalizers)
                        self.world.server.delete(resource, key, DeleteOptions(grace_seconds=0))


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: without_nulls(part) for name, part in value.items() if part is not None}
        case list():
            return [without_nulls(part) for part in value if part is not None]
        case _:
            return value


def play_seed(seed: int, scenario: Scenario | None = None) -> Sickness:
    scenario = scenario or a_scenario()
    drains, faults = Drains(), faults_of(scenario, seed, list(TYPES))
    assert faults is not None
    result = Sickness(seed=seed)
    try:
        world = build_world(Settings(seed, choose_components(scenario)), drains, fault_injection=faults)
        tenant, judge = Tenant(world, seed), WriteJudge(world)
        story = play(world, scenario, drains, faults=faults)
    except Exception as error:
        return Sickness(seed=seed, exits=[f"{type(error).__name__}: {error}"[:500]])
    result.digest, result.writes, result.faults = story.digest, story.writes, dict(faults.counts.injected)
    result.accepted, result.refused = tenant.accepted, tenant.refused
    result.kinds, result.own_writes = dict(tenant.kinds), dict(judge.writes)
    result.wrong = [*story.findings, *judge.wrong, *find_harm(world, story)]
    return result


def find_harm(world: World, story: Story) -> list[str]:
    """What is not as it should be for the neighbours once all is over."""
    harm = [] if story.settled else ["it does not settle", *story.stuck]
    for name in NEIGHBOURS:
        workload = story.workloads.get(f"default/{name}")
        if workload is None or not workload.available == workload.replicas > 0:
            harm.append(f"{name} is not complete: {workload}")
    wukong = world.state.get(Wukong, Key("default", "machine"))
    if wukong is None or [entry.status for entry in wukong.status.conditions if entry.type == "Accepted"] != ["True"]:
        harm.append("the Wukong machine is no longer accepted")
    for name in ("shop", "search"):
        rollout = world.state.get(Rollout, Key("default", name))
        if rollout is None or rollout.status.phase != "Healthy":
            harm.append(f"the Rollout {name} has not completed: {rollout and rollout.status}")
    for name in ("web", "db"):
        policy = world.state.get(PlacementPolicy, Key("default", name))
        conditions = policy.status.conditions if policy is not None else []
        if [condition.status for condition in conditions if condition.type == "Accepted"] != ["True"]:
            harm.append(f"the policy {name} is no longer accepted")
    spot_nodes = {node.metadata.name for node in world.state.all(Node) if node.metadata.name.startswith("s")}
    web = [document for document in world.server.list(KINDS["Pod"].resource).items if is_pod_of(document, "web")]
    if not any(pod["spec"].get("nodeName") in spot_nodes for pod in web):
        harm.append("no pod of web is on spot")
    return harm


def is_pod_of(document: dict[str, Any], app: str) -> bool:
    meta = document["metadata"]
    return bool(meta["namespace"] == "default" and (meta.get("labels") or {}).get("app") == app)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostile.sickness", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1-500", help="A-B")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    results: list[Sickness] = []
    for result in play_seeds(play_seed, range(int(first), int(last or first) + 1), options.jobs):
        results.append(result)
        for problem in (*result.exits, *result.wrong):
            sys.stdout.write(f"seed {result.seed}: {problem}\n")
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{len(results)} seeds")
    sys.stdout.write(format_table(results))
    return int(any(result.exits or result.wrong for result in results))


def format_table(results: Sequence[Sickness]) -> str:
    """The table of docs/fidelity.md."""
    faults, kinds, own_writes = Counter[str](), Counter[str](), Counter[str]()
    for result in results:
        faults.update(result.faults)
        kinds.update(result.kinds)
        own_writes.update(result.own_writes)
    rows = {
        "seeds, an hour each": len(results),
        "faults that struck": f"{sum(faults.values()):,} of {len(faults)} types (of {len(TYPES)})",
        "hostile objects and changes": f"{sum(result.accepted for result in results):,} taken by the API server, "
        f"{sum(result.refused for result in results):,} refused",
        "kinds of objects taken": f"{len(kinds)} (of {len(EVERY_KIND)} that have a namespace)",
        "writes": f"{sum(result.writes for result in results):,}",
        "asked for by our components": ", ".join(f"{name} {count:,}" for name, count in sorted(own_writes.items())),
        "exits": sum(len(result.exits) for result in results),
        "wrong writes, neighbours who suffer": sum(len(result.wrong) for result in results),
    }
    lines = ["| what | how many |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
