"""Random scenarios by seed with several workloads at once, and up to three things that happen to them in turn. Pure.

Read by command.py. What scenarios.py leaves out is here: zones, pods that follow others, host ports, priorities and
preemption, DaemonSets and Jobs, budgets with AlwaysAllow; pauses, rollbacks, scaling to zero, taints, late nodes.

    web     a Deployment or a StatefulSet: most of what happens, happens to it
    cache   one or two pods that web follows, or keeps away from
    agent   a DaemonSet          batch   a Job          low, urgent   who is preempted, and for whom

Chance decides more than in scenarios.py, which nodes pods get above all: the real story must be like that of one seed.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from testbed.fidelity.scenarios import (
    DEADLINE,
    FOR,
    HOSTNAME,
    REGION,
    ZONE,
    Json,
    brief_tolerations,
    rolling,
)

START = 4  # seconds until a container runs
HIGH, LOW = 1000, 10
PLACES = {  # how web's pods choose their nodes → weight
    "anywhere": 4,
    "apart": 5,
    "apart from cache": 4,
    "with cache in a zone": 5,
    "with cache on a node": 3,
    "even over zones": 5,
    "rather even over zones": 2,
    "even over nodes": 3,
    "a port each": 4,
    "fast disks": 3,
}
HAPPENINGS = {  # what happens → weight
    "update": 9,
    "update to never ready": 4,
    "update and go back": 5,
    "update while paused": 5,
    "scale": 5,
    "scale to zero and up": 5,
    "drain": 9,
    "drain two": 5,
    "cordon": 5,
    "cordon and uncordon": 3,
    "taint": 6,
    "taint and take it back": 3,
    "late node": 6,
    "urgent": 7,
    "update cache": 3,
    "scale cache": 3,
    "update agent": 4,
    "late job": 3,
    "kill": 1,
    "silence": 1,
}
NEEDS_CACHE = ("apart from cache", "with cache in a zone", "with cache on a node")
GOING = {"key": "going", "value": "yes", "effect": "NoExecute"}


class Happening(NamedTuple):
    entries: list[tuple[int, Json]]  # seconds after it begins, and what
    seconds: int  # until all of it is over, as far as that is known


def a_mixed_scenario(seed: int, *, own: str = "") -> Json:
    """As a scenario file has it. `own` names its namespace and nodes, mix-<seed> unless given."""
    return _Generator(seed, own or f"mix-{seed}").draw_scenario()


class _Generator:
    def __init__(self, seed: int, own: str) -> None:
        self.random, self.own = Random(f"fidelity/mixed/{seed}"), own
        self.nodes, self.zones = self.random.randint(3, 6), self.random.choice([2, 2, 3])
        self.place = self._choose(PLACES)
        self.kind = self.random.choices(["Deployment", "StatefulSet"], [75, 25])[0]
        self.happenings = self._draw_happenings()
        self.has_cache = (
            self.place in NEEDS_CACHE or self._has("update cache", "scale cache") or self.random.random() < 0.3
        )
        self.cache_kind, self.cache_replicas = self._pick("Deployment", "StatefulSet"), self.random.randint(1, 2)
        self.has_agent = self._has("update agent") or self.random.random() < 0.3
        self.has_low = self._has("urgent")
        self.replicas = self._draw_replicas()
        self.stop_seconds = self._pick("0.1", "0.1", "2")
        self.turns = 0  # how many nodes something happened to
        self.lost_nodes: set[str] = set()

    def _choose(self, weights: dict[str, int]) -> str:
        return self.random.choices([*weights], [*weights.values()])[0]

    def _pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def _has(self, *names: str) -> bool:
        return bool(set(names) & set(self.happenings))

    def _draw_happenings(self) -> list[str]:
        count = self.random.choices([1, 2, 3], [40, 40, 20])[0]
        names: list[str] = []
        while len(names) < count:
            name = self._choose(HAPPENINGS)
            is_fit = self.kind == "Deployment" or name not in ("update while paused",)
            if name not in names and is_fit:
                names.append(name)
        return names

    def _draw_replicas(self) -> int:
        if self.place in ("apart", "a port each"):
            return self.random.randint(1, self.nodes)
        return self.random.randint(1, 6 if self.kind == "Deployment" else 4)

    # ---- the whole

    def draw_scenario(self) -> Json:
        early = [*self._draw_priorities(), *self._draw_company()]
        web = [self._draw_web(), *self._draw_budget()]
        begin, timeline = 6 + (START + 2) * 2, []
        if self.random.random() < 0.25:  # made together: who is faster decides
            early += web
        else:
            timeline = [{"at": f"{begin}s", "apply": web}]
        begin += 6 + (START + 2) * (self.replicas if self.kind == "StatefulSet" else 1)
        for name in self.happenings:
            happening = self._draw_happening(name)
            timeline += [{"at": f"{begin + after}s", **entry} for after, entry in happening.entries]
            begin += happening.seconds
        return {
            "nodes": [self._draw_node(number) for number in range(1, self.nodes + 1)],
            "manifests": early,
            "timeline": timeline,
            "until": f"{begin + 60}s",
        }

    def _draw_node(self, number: int) -> Json:
        """A region of its own: the node controller counts what is down by region and zone."""
        labels = {FOR: self.own, REGION: self.own, ZONE: f"{self.own}-z{number % self.zones}"}
        labels |= {"disk": "ssd"} if number % 2 else {}
        return {"name": f"{self.own}-{number}", "labels": labels, "capacity": {"cpu": 4}}

    # ---- who is there

    def _draw_priorities(self) -> list[Json]:
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        values = {"high": HIGH, "low": LOW} if self.has_low else {}
        return [{**head, "metadata": {"name": f"{self.own}-{name}"}, "value": value} for name, value in values.items()]

    def _draw_company(self) -> list[Json]:
        company = []
        if self.has_cache:
            company.append(self._draw_cache())
        if self.has_agent:
            company.append(self._draw_agent())
        if self.random.random() < 0.2:
            company.append(self._draw_job("batch"))
        if self.has_low:
            company.append(self._draw_low())
        return company

    def _draw_web(self) -> Json:
        pod = self._draw_pod("web", self._pick("100m", "200m", "500m", "900m"))
        self._place(pod["spec"])
        spec: Json = {"replicas": self.replicas, "template": pod}
        if self.kind == "Deployment":
            spec |= {"progressDeadlineSeconds": DEADLINE, "strategy": self._draw_strategy()}
            spec |= self._pick({}, {}, {}, {"minReadySeconds": 3})
        else:
            spec |= {"serviceName": "web", "podManagementPolicy": self._pick("OrderedReady", "Parallel")}
        return self._workload(self.kind, "web", spec)

    def _place(self, spec: Json) -> None:
        apart, together = _term("web", HOSTNAME), _term("cache", ZONE if "zone" in self.place else HOSTNAME)
        if self.place == "apart":
            spec["affinity"] = {"podAntiAffinity": _required(apart)}
        elif self.place == "apart from cache":
            spec["affinity"] = {"podAntiAffinity": _required(*self._pick([together], [apart, together]))}
        elif self.place.startswith("with cache"):
            spec["affinity"] = {"podAffinity": _required(together)}
        elif "even" in self.place:
            key = ZONE if "zones" in self.place else HOSTNAME
            spread = {"maxSkew": 1, "topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
            spread["whenUnsatisfiable"] = "ScheduleAnyway" if "rather" in self.place else "DoNotSchedule"
            spread |= self._pick({}, {}, {"nodeTaintsPolicy": "Honor"})
            spec["topologySpreadConstraints"] = [spread]
        elif self.place == "a port each":
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        elif self.place == "fast disks":
            spec["nodeSelector"] = {**spec["nodeSelector"], "disk": "ssd"}

    def _draw_strategy(self) -> Json:
        if self.random.random() < 0.1:
            return {"type": "Recreate"}
        surge, unavailable = self._pick(0, 1, 2, "25%", "100%"), self._pick(0, 1, "25%", "50%")
        return rolling(1 if surge == 0 and unavailable == 0 else surge, unavailable)

    def _draw_budget(self) -> list[Json]:
        if self.random.random() > (0.9 if self._has("drain", "drain two") else 0.3):
            return []
        least = self._pick(1, max(1, self.replicas - 1), self.replicas, self.replicas, "60%", "90%")
        bound = self._pick({"minAvailable": least}, {"maxUnavailable": self._pick(0, 1, 1, "30%")})
        spec = {"selector": {"matchLabels": {"app": "web"}}, **bound}
        spec |= self._pick({}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"})
        meta = {"name": "web", "namespace": self.own}
        return [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}]

    def _draw_cache(self) -> Json:
        pod = self._draw_pod("cache", "300m")
        if self.random.random() < 0.4:
            pod["spec"]["nodeSelector"] = {**pod["spec"]["nodeSelector"], "disk": "ssd"}
        spec: Json = {"replicas": self.cache_replicas, "template": pod}
        if self.cache_kind == "Deployment":
            spec["progressDeadlineSeconds"] = DEADLINE
        else:
            spec["serviceName"] = "cache"
        return self._workload(self.cache_kind, "cache", spec)

    def _draw_agent(self) -> Json:
        pod = self._draw_pod("agent", "100m")
        if self.random.random() < 0.3:
            pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        rolling_update = self._pick({"maxUnavailable": 1}, {"maxUnavailable": 2}, {"maxSurge": 1, "maxUnavailable": 0})
        spec = {"template": pod, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update}}
        return self._workload("DaemonSet", "agent", spec)

    def _draw_job(self, name: str) -> Json:
        pod = self._draw_pod(name, "200m")
        pod["metadata"]["annotations"] |= {"sim.novasphere.dev/run-seconds": "8"}
        pod["spec"]["restartPolicy"] = "Never"
        spec: Json = {"completions": self.random.randint(1, 4), "parallelism": self._pick(1, 2), "template": pod}
        if self.random.random() < 0.25:
            pod["metadata"]["annotations"] |= {"sim.novasphere.dev/exit-code": "1"}
            spec["backoffLimit"] = 0
        meta = {"name": name, "namespace": self.own}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}

    def _draw_low(self) -> Json:
        """Two on every node, with room for no third."""
        pod = self._draw_pod("low", "1500m")
        pod["spec"]["priorityClassName"] = f"{self.own}-low"
        spread = {"maxSkew": 1, "topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "low"}}}
        pod["spec"]["topologySpreadConstraints"] = [{**spread, "whenUnsatisfiable": "DoNotSchedule"}]
        spec = {"replicas": 2 * self.nodes, "template": pod, "progressDeadlineSeconds": DEADLINE}
        return self._workload("Deployment", "low", spec)

    def _draw_pod(self, app: str, cpu: str) -> Json:
        container = {"name": app, "image": f"{app}:1", "resources": {"requests": {"cpu": cpu}}}
        spec: Json = {"nodeSelector": {FOR: self.own}, "containers": [container], "tolerations": brief_tolerations()}
        annotations = {
            "sim.novasphere.dev/start-seconds": str(START),
            "sim.novasphere.dev/stop-seconds": self.stop_seconds,
        }
        return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": spec}

    def _workload(self, kind: str, name: str, spec: Json) -> Json:
        meta = {"name": name, "namespace": self.own}
        spec = {"selector": {"matchLabels": {"app": name}}, **spec}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}

    # ---- what happens

    def _draw_happening(self, name: str) -> Happening:
        update_seconds = 10 + (START + 3) * (self.replicas if self.kind == "StatefulSet" else 3)
        match name:
            case "update":
                return Happening([(0, self._set_image("web", self.kind, 2))], update_seconds)
            case "update to never ready":
                return Happening([(0, self._set_image("web", self.kind, 3, never_ready="true"))], 20)
            case "update and go back":
                bad = self._set_image("web", self.kind, 4, never_ready="true")
                back = self._set_image("web", self.kind, 1, never_ready=None)
                return Happening([(0, bad), (START * 3, back)], START * 3 + update_seconds)
            case "update while paused":
                pause, resume = (self._patch("web", self.kind, {"paused": value}) for value in (True, False))
                entries = [(0, pause), (2, self._set_image("web", self.kind, 5))]
                if self.random.random() < 0.7:
                    return Happening([*entries, (12, resume)], 12 + update_seconds)
                return Happening(entries, 12)
            case "scale":
                return Happening([(0, self._scale("web", self.kind, self.random.randint(0, self.replicas + 2)))], 18)
            case "scale to zero and up":
                up = self._scale("web", self.kind, self._pick(self.replicas, self.replicas + 1))
                return Happening([(0, self._scale("web", self.kind, 0)), (12, up)], 12 + update_seconds)
            case "update cache":
                return Happening([(0, self._set_image("cache", self.cache_kind, 2))], 22)
            case "scale cache":
                return Happening([(0, self._scale("cache", self.cache_kind, self.random.randint(0, 3)))], 18)
            case "update agent":
                return Happening([(0, self._set_image("agent", "DaemonSet", 2))], 8 + self.nodes * (START + 2))
            case "late job":
                return Happening([(0, {"apply": self._draw_job("late")})], 30)
            case "urgent":
                return Happening([(0, {"apply": self._draw_urgent()})], 20)
            case _:
                return self._draw_node_happening(name)

    def _draw_node_happening(self, name: str) -> Happening:
        first, second = self._next_node(), self._next_node()
        match name:
            case "drain":
                return Happening([(0, {"drain": first})], 16)
            case "drain two":
                return Happening([(0, {"drain": first}), (self._pick(0, 12), {"drain": second})], 28)
            case "cordon":
                return Happening([(0, {"cordon": first})], 4)
            case "cordon and uncordon":
                return Happening([(0, {"cordon": first}), (16, {"uncordon": first})], 30)
            case "taint":
                return Happening([(0, self._taint(first, GOING))], 16)
            case "taint and take it back":
                return Happening([(0, self._taint(first, GOING)), (14, self._taint(first))], 28)
            case "late node":
                return Happening([(0, {"apply": self._draw_late_node()})], 16)
            case "kill":
                self.lost_nodes.add(first)
                return Happening([(0, {"kill": first})], 60)
            case _:
                return Happening([(0, {"notReady": first})], 75)

    def _next_node(self) -> str:
        """In turn; one that was lost is never drawn again."""
        self.turns += 1
        name = f"{self.own}-{(self.turns - 1) % self.nodes + 1}"
        return self._next_node() if name in self.lost_nodes else name

    def _draw_late_node(self) -> Json:
        node = self._draw_node(self.nodes + 1 + self.turns)
        capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        meta = {"name": node["name"], "labels": {HOSTNAME: node["name"], **node["labels"]}}
        status = {"capacity": capacity, "allocatable": capacity}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}

    def _draw_urgent(self) -> Json:
        pod = self._draw_pod("urgent", self._pick("1200m", "2"))
        pod["spec"]["priorityClassName"] = f"{self.own}-high"
        spec = {"replicas": self.random.randint(1, 2), "template": pod, "progressDeadlineSeconds": DEADLINE}
        return self._workload("Deployment", "urgent", spec)

    def _set_image(self, name: str, kind: str, version: int, **never_ready: str | None) -> Json:
        """`never_ready` sets that annotation; None takes it away."""
        template: Json = {"spec": {"containers": [{"name": name, "image": f"{name}:{version}"}]}}
        if never_ready:
            template["metadata"] = {"annotations": {"sim.novasphere.dev/never-ready": never_ready["never_ready"]}}
        return self._patch(name, kind, {"template": template})

    def _patch(self, name: str, kind: str, spec: Json) -> Json:
        return {"patch": {"kind": kind, "name": name, "namespace": self.own, "patch": {"spec": spec}}}

    def _scale(self, name: str, kind: str, replicas: int) -> Json:
        return {"scale": {"kind": kind, "name": name, "namespace": self.own, "replicas": replicas}}

    def _taint(self, node: str, *taints: Json) -> Json:
        return {"patch": {"kind": "Node", "name": node, "type": "merge", "patch": {"spec": {"taints": list(taints)}}}}


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _required(*terms: Json) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
