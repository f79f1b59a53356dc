"""Random patches of all types for a few kinds of objects: most of them fit, some must be refused.

Each is drawn from one `random.Random`, so a seed determines it. Meant for comparing two servers, not for covering
fields.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from wukong.ports import Document, PatchBody

LABELS = ["app", "tier", "example.com/team"]
VALUES = ["a", "b", "", "web-1"]
QUANTITIES = ["100m", "1", "1000m", "0.5", "1Gi", "1024Mi", "2e3", 3, "1500Ki"]
FINALIZERS = ["wukong.test/one", "wukong.test/two", "wukong.test/three"]
CONTAINERS = ["main", "extra", "third"]
# Where any value may be tried, for the embedded store reads these fields: of others it does not know the type.
TYPED_FIELDS = ("image", "schedulerName", "replicas", "maxSkew", "key", "operator", "cpu", "memory", "containerPort")
NODE_TERMS: list[Document] = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "abc"
]


def a_workload(random: Random, name: str, **spec: Any) -> Document:
    labels = {"pinned": "yes"}
    template: Document = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "nobody", "containers": [a_container("main")]},
    }
    if random.random() < 0.5:
        template["spec"]["containers"].append(a_container("extra"))
    body = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": body}


def a_pod(name: str) -> Document:
    """Return a pod without a token: with the mount that a real server adds, containers could not be replaced."""
    spec = {"schedulerName": "nobody", "automountServiceAccountToken": False, "containers": [a_container("main")]}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


def a_map(name: str) -> Document:
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"a": "1", "b": "2"}}


def a_container(name: str) -> Document:
    return {"name": name, "image": f"registry.example/{name}:1"}


def a_patch(random: Random, kind: str, document: Document) -> PatchBody:
    """Return a patch for this object of this kind."""
    type_ = random.choice(["strategic", "strategic", "merge", "json"])
    if type_ == "json":
        return PatchBody("json", [an_operation(random, document) for _ in range(random.randint(1, 3))])
    return PatchBody("strategic" if type_ == "strategic" else "merge", Body(random, kind, type_ == "strategic").build())


class Body:
    """One strategic or merge patch. Directives are for strategic ones only."""

    def __init__(self, random: Random, kind: str, is_strategic: bool) -> None:
        self.random, self.kind, self.is_strategic = random, kind, is_strategic

    def build(self) -> Document:
        body: Document = {}
        if self.draw(0.5):
            body["metadata"] = self.build_metadata()
        if self.kind == "ConfigMap":
            body["data"] = self.build_map(["a", "b", "c", "d.e"], lambda: self.choice(["1", "2", "", None]))
        elif self.kind == "Pod":
            body["spec"] = self.build_pod_change()
        else:
            body["spec"] = self.build_workload()
        return body

    def build_metadata(self) -> Document:
        metadata: Document = {"labels": self.build_labels()}
        if self.draw(0.3):
            metadata["annotations"] = self.build_labels()
        if self.draw(0.3):
            metadata["finalizers"] = self.random.sample(FINALIZERS, self.random.randint(0, 2)) or None
        elif self.is_strategic and self.draw(0.3):  # never both: a real server does them in any order
            metadata["$deleteFromPrimitiveList/finalizers"] = self.random.sample(FINALIZERS, 1)
        return metadata

    def build_labels(self) -> Any:
        labels = self.build_map(LABELS, lambda: self.choice([*VALUES, None]))
        if self.is_strategic and self.draw(0.1):
            labels["$patch"] = "replace"
        return labels if self.draw(0.9) else None

    def build_pod_change(self) -> Document:
        spec: Document = {}
        if self.draw(0.4):
            spec["activeDeadlineSeconds"] = self.choice([100, 50, 200, None, -1])
        if self.draw(0.3):
            spec["tolerations"] = self.build_tolerations()
        if self.draw(0.4):
            spec["containers"] = [
                {"name": self.choice(["main", "main", "extra"]), "image": self.choice(["i:1", "i:2"])}
            ]
        if self.draw(0.2):
            spec["nodeSelector"] = self.build_labels()
        if self.draw(0.1):
            spec["affinity"] = self.build_affinity()
        return spec

    def build_workload(self) -> Document:
        spec: Document = {}
        if self.draw(0.3):
            spec["minReadySeconds"] = self.choice([0, 5, None, -1])
        if self.kind == "Deployment" and self.draw(0.3):
            spec["strategy"] = self.build_strategy()
        if self.kind == "Deployment" and self.draw(0.2):
            spec["revisionHistoryLimit"] = self.choice([0, 3, None])
        spec["template"] = {"spec": self.build_pod_spec()}
        if self.draw(0.3):
            spec["template"]["metadata"] = {"labels": self.build_map(LABELS, lambda: self.choice([*VALUES, None]))}
        return spec

    def build_strategy(self) -> Any:
        strategy = self.choice(
            [
                {"type": "Recreate"},
                {"type": "Recreate", "rollingUpdate": None},
                {"rollingUpdate": {"maxSurge": self.choice([1, "30%", 0])}},
                {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
                {"type": "RollingUpdate"},
                None,
            ]
        )
        if strategy and self.is_strategic and self.draw(0.5):
            strategy["$retainKeys"] = sorted(strategy)
        return strategy

    def build_pod_spec(self) -> Document:
        makers: dict[str, Callable[[], Any]] = {
            "containers": self.build_containers,
            "initContainers": self.build_containers,
            "tolerations": self.build_tolerations,
            "nodeSelector": self.build_labels,
            "affinity": self.build_affinity,
            "topologySpreadConstraints": self.build_spread,
            "volumes": self.build_volumes,
            "terminationGracePeriodSeconds": lambda: self.choice([0, 10, None]),
            "hostNetwork": lambda: self.choice([False, None]),
            "schedulerName": lambda: self.choice(["nobody", None]),
            "securityContext": lambda: self.choice([{"runAsNonRoot": True}, {}, None]),
            "imagePullSecrets": lambda: [{"name": self.choice(["x", "y"])}],
            "hostAliases": lambda: [{"ip": self.choice(["10.0.0.1", "10.0.0.2"]), "hostnames": [self.choice("ab")]}],
        }
        chosen = self.random.sample(sorted(makers), self.random.randint(1, 3))
        spec: Document = {name: makers[name]() for name in chosen}
        if self.is_strategic and isinstance(spec.get("containers"), list) and self.draw(0.3):
            names = [
                container["name"]
                for container in spec["containers"]
                if "name" in container and "$patch" not in container
            ]
            order = list(dict.fromkeys([*names, *CONTAINERS]))
            if all("$patch" not in container for container in spec["containers"]):
                spec["$setElementOrder/containers"] = [{"name": name} for name in order]
        return spec

    def build_containers(self) -> list[Document]:
        names = self.random.sample(CONTAINERS, self.random.randint(1, 3))
        containers = [self.build_container(name) for name in names]
        if self.is_strategic and self.draw(0.1):
            containers.append({"$patch": "replace"})
        return containers

    def build_container(self, name: str) -> Document:
        if self.is_strategic and self.draw(0.2):
            return {"name": name, "$patch": "delete"}
        container: Document = {"name": name}
        if self.draw(0.8):
            container["image"] = self.choice(["i:1", "i:latest", "registry.example:5000/i"])
        if self.draw(0.4):
            container["env"] = [
                self.build_variable(name_) for name_ in self.random.sample("ABC", self.random.randint(1, 2))
            ]
        if self.draw(0.3):
            container["ports"] = [{"containerPort": self.choice([80, 81])}]
        if self.draw(0.4):
            container["resources"] = self.choice([None, {"requests": self.build_amounts()}, {"requests": None}])
        if self.draw(0.2):
            container["volumeMounts"] = [{"name": "v", "mountPath": self.choice(["/a", "/b"])}]
        return container

    def build_variable(self, name: str) -> Document:
        if self.is_strategic and self.draw(0.3):
            return {"name": name, "$patch": "delete"}
        return {"name": name, "value": self.choice(["1", "2", ""])}

    def build_amounts(self) -> Document:
        return self.build_map(["cpu", "memory"], lambda: self.choice([*QUANTITIES, None]))

    def build_tolerations(self) -> Any:
        keys = self.random.sample("xyz", self.random.randint(0, 2))
        return [{"key": key, "operator": "Exists"} for key in keys] or self.choice([None, []])

    def build_affinity(self) -> Any:
        required = {"nodeSelectorTerms": self.random.sample(NODE_TERMS, self.random.randint(1, 2))}
        return self.choice(
            [
                None,
                {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
                {"nodeAffinity": None},
                {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
            ]
        )

    def build_spread(self) -> list[Document]:
        actions = ["DoNotSchedule", "ScheduleAnyway"]
        return [
            {"topologyKey": key, "maxSkew": self.choice([1, 2]), "whenUnsatisfiable": self.choice(actions)}
            for key in self.random.sample(["zone", "rack"], self.random.randint(1, 2))
        ]

    def build_volumes(self) -> list[Document]:
        names = self.random.sample("vw", self.random.randint(1, 2))
        volumes = [
            {"name": name, **self.choice([{"emptyDir": {}}, {"configMap": {"name": "m"}}, {}])} for name in names
        ]
        if self.is_strategic:
            for volume in volumes:
                if self.draw(0.5):
                    volume["$retainKeys"] = sorted(volume)
        return volumes

    def build_map(self, names: list[str], value: Any) -> Document:
        return {name: value() for name in self.random.sample(names, self.random.randint(1, len(names)))}

    def choice(self, among: Any) -> Any:
        return self.random.choice(among)

    def draw(self, probability: float) -> bool:
        return self.random.random() < probability


def an_apply(random: Random, kind: str, name: str) -> PatchBody:
    """Return what one of two managers applies, with force or without. Only fields whose owners and merging we model."""
    body = Body(random, kind, is_strategic=False)
    configuration: Document = {"metadata": {"name": name}}
    if body.draw(0.6):
        configuration["metadata"]["labels"] = body.build_map(LABELS, lambda: body.choice(VALUES))
    if body.draw(0.3):
        configuration["metadata"]["finalizers"] = random.sample(FINALIZERS, random.randint(1, 2))
    if kind == "ConfigMap":
        configuration["data"] = body.build_map(["a", "b", "c"], lambda: body.choice(["1", "2"]))
    else:
        configuration["spec"] = build_applied_workload(body)
    return PatchBody("apply", configuration, manager=body.choice(["alice", "bob"]), force=body.draw(0.5))


def build_applied_workload(body: Body) -> Document:
    spec: Document = {}
    if body.draw(0.5):
        names = body.random.sample(CONTAINERS, body.random.randint(1, 2))
        spec["containers"] = [{"name": name, "image": body.choice(["i:1", "i:2"])} for name in names]
        for container in spec["containers"]:
            if body.draw(0.5):
                container["env"] = [{"name": name, "value": body.choice("12")} for name in body.random.sample("AB", 1)]
            if body.draw(0.3):
                container["ports"] = [{"containerPort": body.choice([80, 81])}]
    if body.draw(0.5):
        spec["tolerations"] = [{"key": body.choice("xy"), "operator": "Exists"}]
    if body.draw(0.4):
        spec["nodeSelector"] = body.build_map(LABELS, lambda: body.choice(VALUES))
    if body.draw(0.4):
        term = {"nodeSelectorTerms": body.random.sample(NODE_TERMS, body.random.randint(1, 2))}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    if body.draw(0.4):
        spec["topologySpreadConstraints"] = body.build_spread()
    workload: Document = {"template": {"spec": spec}} if spec else {}
    if body.draw(0.4):
        workload["minReadySeconds"] = body.choice([3, 5])
    return workload


def an_operation(random: Random, document: Document) -> Document:
    """Return a JSON patch operation, mostly at a path that exists."""
    existing = [path for path in paths_of(document) if path.startswith(("/metadata/labels/", "/data/", "/spec/"))]
    path = random.choice([*existing, "/metadata/labels/missing"])
    kind = random.choice(["add", "replace", "remove", "test", "copy", "move"])
    if random.random() < 0.1:
        path += "/nowhere/at/all"
    if kind in ("copy", "move"):
        copyable = [
            existing_path for existing_path in existing if existing_path.startswith(("/metadata/labels/", "/data/"))
        ]
        path = random.choice([*copyable, "/metadata/labels/missing"])
        return {"op": kind, "from": path, "path": random.choice(["/metadata/labels/copied", path])}
    if kind == "remove":
        return {"op": kind, "path": path}
    value = value_at(document, path)
    if random.random() < 0.5 and (path.rpartition("/")[2] in TYPED_FIELDS or not path.startswith("/spec")):
        value = random.choice(["changed", "a", 5])
    if kind == "add" and random.random() < 0.5:
        path, value = random.choice([("/metadata/labels/added", "x"), ("/metadata/annotations", {"k": "v"})])
    return {"op": kind, "path": path, "value": value}


def paths_of(value: Any, path: str = "") -> list[str]:
    result = [path] if path else []
    if isinstance(value, dict):
        for name, entry in value.items():
            result += paths_of(entry, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            result += paths_of(entry, f"{path}/{index}")
    return result


def value_at(document: Any, path: str) -> Any:
    for escaped in path.split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return document
