"""Random scenarios by seed: a workload, where its pods may go, a budget, and something that happens to it. Pure.

Read by run.py. Each has a namespace and nodes of its own, so that many can be played on one cluster side by side.

What is asked must have an answer: Kubernetes draws which of two equal nodes a pod gets, and which of two equal pods
goes first. So where something happens to a node, every node of the scenario holds the same number of pods; and pods
take seconds to start, so that nothing depends on which of two controllers was faster by milliseconds.
"""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

KINDS = ("Deployment", "StatefulSet")
FOR = "sim.novasphere.dev/for"
HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
LABELS = {"app": "web"}
DEADLINE = 14
START = {"Deployment": 5}  # seconds until a container runs, longer than busy controllers take for what they do next
USUAL_START, SLOW_START = 3, 8  # of other kinds, and where something happens meanwhile
ON_NODES = ("drain", "drain two", "cordon and update", "cordon and scale", "kill", "silence", "drain in an update")
CHANGES = {
    "Deployment": {
        "update": 26,
        "scale": 8,
        "update to where no node is": 7,
        "update to never ready": 6,
        "drain": 32,
        "drain two": 16,
        "drain in an update": 6,
        "cordon and update": 7,
        "cordon and scale": 4,
        "kill": 3,
        "silence": 3,
    },
    "StatefulSet": {
        "update": 22,
        "scale": 10,
        "update to where no node is": 8,
        "update to never ready": 6,
        "drain": 32,
        "drain two": 16,
        "cordon and update": 8,
        "kill": 6,
        "silence": 6,
    },
}
LONG = ("kill", "silence")  # Kubernetes itself waits a minute
PLACES = ("none", "none", "apart", "apart by version", "versions apart", "rather apart", "some nodes", "even")


def a_scenario(seed: int, kinds: tuple[str, ...] = KINDS, *, own: str = "") -> Json:
    """As a scenario file has it. `own` names its namespace and nodes, fid-<seed> unless given."""
    return _Generator(seed, kinds, own or f"fid-{seed}").draw_scenario()


class _Generator:
    def __init__(self, seed: int, kinds: tuple[str, ...], own: str) -> None:
        self.random, self.own = Random(f"fidelity/{seed}"), own
        self.kind = self.random.choices(kinds, [{"Deployment": 70, "StatefulSet": 30}[kind] for kind in kinds])[0]
        weights = CHANGES[self.kind]
        self.change = self.random.choices([*weights], [*weights.values()])[0]
        self.place = self.random.choice(PLACES)
        self.nodes = self.random.randint(2, 4)
        if self.change == "drain two":
            self.nodes = self.random.randint(3, 4)
        self.fit = self.nodes  # how many nodes its pods may use
        if self.place == "some nodes":
            self.fit = self.random.randint(1 if self.change not in ON_NODES else 2, self.nodes)
        self.replicas = self._draw_replicas()
        in_turn = self.replicas if self.kind == "StatefulSet" else 1
        self.start = SLOW_START if self.change == "drain in an update" else START.get(self.kind, USUAL_START)
        self.begin = 6 + (self.start + 1) * in_turn

    def _draw_replicas(self) -> int:
        most = 6 if self.kind == "Deployment" else 4
        if self.change in ON_NODES:  # as many on every node
            per_node = 1 if self._is_apart else self.random.choice([1, 2, 2])
            return self.fit * max(1, min(per_node, most // self.fit))
        if self._is_apart:
            return self.random.randint(1, self.fit)
        return self.random.randint(1, most)

    @property
    def _is_apart(self) -> bool:
        return self.place in ("apart", "apart by version")

    def draw_scenario(self) -> Json:
        budget = self._draw_budget()
        return {
            "nodes": self._draw_nodes(),
            "manifests": [self._draw_workload(), *([budget] if budget else [])],
            "timeline": self._draw_timeline(),
            "until": f"{self.begin + (150 if self.change in LONG else 75)}s",
        }

    # ---- where

    def _draw_nodes(self) -> list[Json]:
        """A region of its own: the node controller counts what is down by region and zone."""
        nodes = []
        for number in range(1, self.nodes + 1):
            labels = {FOR: self.own, REGION: self.own, ZONE: "ab"[number % 2]}
            labels |= {"disk": "ssd"} if number <= self.fit else {}
            nodes.append({"name": f"{self.own}-{number}", "labels": labels, "capacity": {"cpu": 4}})
        return nodes

    def _draw_affinity(self) -> Json:
        term: Json = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": HOSTNAME}
        hash_key = "pod-template-hash" if self.kind == "Deployment" else "controller-revision-hash"
        terms = {
            "apart": term,
            "apart by version": {**term, "matchLabelKeys": [hash_key]},
            "versions apart": {**term, "mismatchLabelKeys": [hash_key]},
        }
        if self.place in terms:
            return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [terms[self.place]]}}
        if self.place == "rather apart":
            chosen = self.random.choice([*terms.values()])
            weighted = {"weight": self.random.choice([1, 50, 100]), "podAffinityTerm": chosen}
            return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
        if self.place == "some nodes":
            there = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [there]}}
            return {"nodeAffinity": required}
        return {}

    def _draw_pod(self) -> Json:
        cpu = self.random.choice(["100m", "500m", "1", "1500m", "1900m"])
        container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
        spec: Json = {"nodeSelector": {FOR: self.own}, "containers": [container], "tolerations": brief_tolerations()}
        affinity = self._draw_affinity()
        spec |= {"affinity": affinity} if affinity else {}
        if self.place == "even":
            spread = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
            spread |= {"labelSelector": {"matchLabels": LABELS}}
            spread |= self.random.choice([{}, {"nodeTaintsPolicy": "Honor"}])
            spec["topologySpreadConstraints"] = [spread]
        annotations = {"sim.novasphere.dev/start-seconds": str(self.start)}
        return {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": spec}

    # ---- what

    def _draw_workload(self) -> Json:
        spec: Json = {"replicas": self.replicas, "selector": {"matchLabels": LABELS}, "template": self._draw_pod()}
        if self.kind == "Deployment":
            spec |= {"progressDeadlineSeconds": DEADLINE, "strategy": self._draw_strategy()}
        else:
            spec |= {"serviceName": "web", "podManagementPolicy": self.random.choice(["OrderedReady", "Parallel"])}
            if self.change == "update" and self.random.random() < 0.3:
                partition = self.random.randint(0, self.replicas)
                spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        meta = {"name": "web", "namespace": self.own}
        return {"apiVersion": "apps/v1", "kind": self.kind, "metadata": meta, "spec": spec}

    def _draw_strategy(self) -> Json:
        draw = self.random
        if self.change == "drain in an update":  # all new pods at once, or none: which node they are on must not matter
            return draw.choice([{"type": "Recreate"}, rolling("100%", 0)])
        if draw.random() < 0.12:
            return {"type": "Recreate"}
        if draw.random() < 0.25:
            return rolling("25%", "25%")
        surges: list[int | str] = [0, 1, 2, "25%", "50%", "100%"]
        surge, unavailable = draw.choice(surges), draw.choice(surges[:-1])
        if surge == 0 and unavailable == 0:
            surge = 1
        return rolling(surge, unavailable)

    def _draw_budget(self) -> Json | None:
        is_drained = self.change.startswith("drain")
        if self.random.random() > (0.95 if is_drained else 0.25):
            return None
        lower: list[int | str] = [1, max(1, self.replicas - 1), self.replicas, "50%", "75%", "90%"]
        upper: list[int | str] = [0, 1, 1, 2, "10%", "20%", "50%"]
        least, most = self.random.choice(lower), self.random.choice(upper)
        if is_drained and self.random.random() < 0.6:  # one too few for all to go at once
            on_nodes = self.replicas // self.fit * (2 if self.change == "drain two" else 1)
            least, most = self.replicas - on_nodes + 1, on_nodes - 1
        bound = self.random.choice([{"minAvailable": least}, {"maxUnavailable": most}])
        spec = {"selector": {"matchLabels": LABELS}, **bound}
        meta = {"name": "web", "namespace": self.own}
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}

    # ---- what happens

    def _draw_timeline(self) -> list[Json]:
        begin, first, second = self.begin, f"{self.own}-1", f"{self.own}-2"
        more = self.replicas + self.random.randint(1, 3)
        fewer = self.random.randint(0, max(0, self.replicas - 1))
        entries: dict[str, list[Json]] = {
            "update": [self._update()],
            "scale": [self._scale(self.random.choice([more, more, fewer]))],
            "update to where no node is": [self._update(nodeSelector={FOR: self.own, "disk": "tape"})],
            "update to never ready": [self._update({"sim.novasphere.dev/never-ready": "true"})],
            "drain": [{"drain": first}],
            "drain two": [{"drain": first}, {"drain": second}],
            "drain in an update": [self._update(), {"after": SLOW_START // 2, "drain": first}],
            "cordon and update": [{"cordon": first}, {"after": 1, **self._update()}],
            "cordon and scale": [{"cordon": first}, {"after": 1, **self._scale(more)}],
            "kill": [{"kill": first}],
            "silence": [{"notReady": first}],
        }
        return [{"at": f"{begin + entry.pop('after', 0)}s", **entry} for entry in entries[self.change]]

    def _update(self, annotations: Json | None = None, **spec: Any) -> Json:
        template: Json = {"spec": {**spec, "containers": [{"name": "web", "image": "web:2"}]}}
        if annotations:
            template["metadata"] = {"annotations": annotations}
        return {"patch": {**self._target(), "patch": {"spec": {"template": template}}}}

    def _scale(self, replicas: int) -> Json:
        return {"scale": {**self._target(), "replicas": replicas}}

    def _target(self) -> Json:
        return {"kind": self.kind, "name": "web", "namespace": self.own}


def rolling(surge: int | str, unavailable: int | str) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def brief_tolerations() -> list[Json]:
    """Five seconds on a node that is not heard of, not five minutes."""
    keys = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5} for key in keys]
