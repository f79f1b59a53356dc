"""Random patches of all types for a few kinds of objects: most of them fit, some must be refused.

Each is made by one `random.Random`, so a seed says it all. Built for comparing two servers, not for coverage of fields.
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
READ = ("image", "schedulerName", "replicas", "maxSkew", "key", "operator", "cpu", "memory", "containerPort")
NODE_TERMS: list[Document] = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "abc"
]


def a_workload(random: Random, name: str, **spec: Any) -> Document:
    labels = {"pinned": "yes"}
    template: Document = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "nobody", "containers": [container("main")]},
    }
    if random.random() < 0.5:
        template["spec"]["containers"].append(container("extra"))
    body = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": body}


def a_pod(name: str) -> Document:
    """Without a token: a real server's mount of it would forbid to replace the containers."""
    spec = {"schedulerName": "nobody", "automountServiceAccountToken": False, "containers": [container("main")]}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


def a_map(name: str) -> Document:
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"a": "1", "b": "2"}}


def container(name: str) -> Document:
    return {"name": name, "image": f"registry.example/{name}:1"}


def a_patch(random: Random, kind: str, document: Document) -> PatchBody:
    """A patch for an object of this kind that looks like this now."""
    type_ = random.choice(["strategic", "strategic", "merge", "json"])
    if type_ == "json":
        return PatchBody("json", [operation(random, document) for _ in range(random.randint(1, 3))])
    return PatchBody("strategic" if type_ == "strategic" else "merge", Body(random, kind, type_ == "strategic").made())


class Body:
    """One strategic or merge patch. Directives are for strategic ones only."""

    def __init__(self, random: Random, kind: str, is_strategic: bool) -> None:
        self.random, self.kind, self.is_strategic = random, kind, is_strategic

    def made(self) -> Document:
        body: Document = {}
        if self.chance(0.5):
            body["metadata"] = self.metadata()
        if self.kind == "ConfigMap":
            body["data"] = self.some(["a", "b", "c", "d.e"], lambda: self.choice(["1", "2", "", None]))
        elif self.kind == "Pod":
            body["spec"] = self.pod_change()
        else:
            body["spec"] = self.workload()
        return body

    def metadata(self) -> Document:
        made: Document = {"labels": self.labels()}
        if self.chance(0.3):
            made["annotations"] = self.labels()
        if self.chance(0.3):
            made["finalizers"] = self.random.sample(FINALIZERS, self.random.randint(0, 2)) or None
        elif self.is_strategic and self.chance(0.3):  # never both: a real server does them in any order
            made["$deleteFromPrimitiveList/finalizers"] = self.random.sample(FINALIZERS, 1)
        return made

    def labels(self) -> Any:
        made = self.some(LABELS, lambda: self.choice([*VALUES, None]))
        if self.is_strategic and self.chance(0.1):
            made["$patch"] = "replace"
        return made if self.chance(0.9) else None

    def pod_change(self) -> Document:
        made: Document = {}
        if self.chance(0.4):
            made["activeDeadlineSeconds"] = self.choice([100, 50, 200, None, -1])
        if self.chance(0.3):
            made["tolerations"] = self.tolerations()
        if self.chance(0.4):
            made["containers"] = [
                {"name": self.choice(["main", "main", "extra"]), "image": self.choice(["i:1", "i:2"])}
            ]
        if self.chance(0.2):
            made["nodeSelector"] = self.labels()
        if self.chance(0.1):
            made["affinity"] = self.affinity()
        return made

    def workload(self) -> Document:
        made: Document = {}
        if self.chance(0.3):
            made["minReadySeconds"] = self.choice([0, 5, None, -1])
        if self.kind == "Deployment" and self.chance(0.3):
            made["strategy"] = self.strategy()
        if self.kind == "Deployment" and self.chance(0.2):
            made["revisionHistoryLimit"] = self.choice([0, 3, None])
        made["template"] = {"spec": self.pod_spec()}
        if self.chance(0.3):
            made["template"]["metadata"] = {"labels": self.some(LABELS, lambda: self.choice([*VALUES, None]))}
        return made

    def strategy(self) -> Any:
        made = self.choice(
            [
                {"type": "Recreate"},
                {"type": "Recreate", "rollingUpdate": None},
                {"rollingUpdate": {"maxSurge": self.choice([1, "30%", 0])}},
                {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
                {"type": "RollingUpdate"},
                None,
            ]
        )
        if made and self.is_strategic and self.chance(0.5):
            made["$retainKeys"] = sorted(made)
        return made

    def pod_spec(self) -> Document:
        makers: dict[str, Callable[[], Any]] = {
            "containers": self.containers,
            "initContainers": self.containers,
            "tolerations": self.tolerations,
            "nodeSelector": self.labels,
            "affinity": self.affinity,
            "topologySpreadConstraints": self.spread,
            "volumes": self.volumes,
            "terminationGracePeriodSeconds": lambda: self.choice([0, 10, None]),
            "hostNetwork": lambda: self.choice([False, None]),
            "schedulerName": lambda: self.choice(["nobody", None]),
            "securityContext": lambda: self.choice([{"runAsNonRoot": True}, {}, None]),
            "imagePullSecrets": lambda: [{"name": self.choice(["x", "y"])}],
            "hostAliases": lambda: [{"ip": self.choice(["10.0.0.1", "10.0.0.2"]), "hostnames": [self.choice("ab")]}],
        }
        chosen = self.random.sample(sorted(makers), self.random.randint(1, 3))
        made: Document = {name: makers[name]() for name in chosen}
        if self.is_strategic and isinstance(made.get("containers"), list) and self.chance(0.3):
            named = [each["name"] for each in made["containers"] if "name" in each and "$patch" not in each]
            order = list(dict.fromkeys([*named, *CONTAINERS]))
            if all("$patch" not in each for each in made["containers"]):
                made["$setElementOrder/containers"] = [{"name": name} for name in order]
        return made

    def containers(self) -> list[Document]:
        names = self.random.sample(CONTAINERS, self.random.randint(1, 3))
        made = [self.container(name) for name in names]
        if self.is_strategic and self.chance(0.1):
            made.append({"$patch": "replace"})
        return made

    def container(self, name: str) -> Document:
        if self.is_strategic and self.chance(0.2):
            return {"name": name, "$patch": "delete"}
        made: Document = {"name": name}
        if self.chance(0.8):
            made["image"] = self.choice(["i:1", "i:latest", "registry.example:5000/i"])
        if self.chance(0.4):
            made["env"] = [self.variable(each) for each in self.random.sample("ABC", self.random.randint(1, 2))]
        if self.chance(0.3):
            made["ports"] = [{"containerPort": self.choice([80, 81])}]
        if self.chance(0.4):
            made["resources"] = self.choice([None, {"requests": self.amounts()}, {"requests": None}])
        if self.chance(0.2):
            made["volumeMounts"] = [{"name": "v", "mountPath": self.choice(["/a", "/b"])}]
        return made

    def variable(self, name: str) -> Document:
        if self.is_strategic and self.chance(0.3):
            return {"name": name, "$patch": "delete"}
        return {"name": name, "value": self.choice(["1", "2", ""])}

    def amounts(self) -> Document:
        return self.some(["cpu", "memory"], lambda: self.choice([*QUANTITIES, None]))

    def tolerations(self) -> Any:
        keys = self.random.sample("xyz", self.random.randint(0, 2))
        return [{"key": key, "operator": "Exists"} for key in keys] or self.choice([None, []])

    def affinity(self) -> Any:
        required = {"nodeSelectorTerms": self.random.sample(NODE_TERMS, self.random.randint(1, 2))}
        return self.choice(
            [
                None,
                {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
                {"nodeAffinity": None},
                {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
            ]
        )

    def spread(self) -> list[Document]:
        how = ["DoNotSchedule", "ScheduleAnyway"]
        return [
            {"topologyKey": key, "maxSkew": self.choice([1, 2]), "whenUnsatisfiable": self.choice(how)}
            for key in self.random.sample(["zone", "rack"], self.random.randint(1, 2))
        ]

    def volumes(self) -> list[Document]:
        names = self.random.sample("vw", self.random.randint(1, 2))
        made = [{"name": name, **self.choice([{"emptyDir": {}}, {"configMap": {"name": "m"}}, {}])} for name in names]
        if self.is_strategic:
            for each in made:
                if self.chance(0.5):
                    each["$retainKeys"] = sorted(each)
        return made

    def some(self, names: list[str], value: Any) -> Document:
        return {name: value() for name in self.random.sample(names, self.random.randint(1, len(names)))}

    def choice(self, among: Any) -> Any:
        return self.random.choice(among)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


def an_apply(random: Random, kind: str, name: str) -> PatchBody:
    """What one of two managers applies, by force or not. Only fields whose owners and merging we model."""
    body = Body(random, kind, is_strategic=False)
    made: Document = {"metadata": {"name": name}}
    if body.chance(0.6):
        made["metadata"]["labels"] = body.some(LABELS, lambda: body.choice(VALUES))
    if body.chance(0.3):
        made["metadata"]["finalizers"] = random.sample(FINALIZERS, random.randint(1, 2))
    if kind == "ConfigMap":
        made["data"] = body.some(["a", "b", "c"], lambda: body.choice(["1", "2"]))
    else:
        made["spec"] = applied_workload(body)
    return PatchBody("apply", made, manager=body.choice(["alice", "bob"]), force=body.chance(0.5))


def applied_workload(body: Body) -> Document:
    spec: Document = {}
    if body.chance(0.5):
        names = body.random.sample(CONTAINERS, body.random.randint(1, 2))
        spec["containers"] = [{"name": name, "image": body.choice(["i:1", "i:2"])} for name in names]
        for each in spec["containers"]:
            if body.chance(0.5):
                each["env"] = [{"name": name, "value": body.choice("12")} for name in body.random.sample("AB", 1)]
            if body.chance(0.3):
                each["ports"] = [{"containerPort": body.choice([80, 81])}]
    if body.chance(0.5):
        spec["tolerations"] = [{"key": body.choice("xy"), "operator": "Exists"}]
    if body.chance(0.4):
        spec["nodeSelector"] = body.some(LABELS, lambda: body.choice(VALUES))
    if body.chance(0.4):
        term = {"nodeSelectorTerms": body.random.sample(NODE_TERMS, body.random.randint(1, 2))}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    if body.chance(0.4):
        spec["topologySpreadConstraints"] = body.spread()
    made: Document = {"template": {"spec": spec}} if spec else {}
    if body.chance(0.4):
        made["minReadySeconds"] = body.choice([3, 5])
    return made


def operation(random: Random, document: Document) -> Document:
    """Mostly at a path that is there."""
    places = [path for path in paths(document) if path.startswith(("/metadata/labels/", "/data/", "/spec/"))]
    path = random.choice([*places, "/metadata/labels/missing"])
    kind = random.choice(["add", "replace", "remove", "test", "copy", "move"])
    if random.random() < 0.1:
        path += "/nowhere/at/all"
    if kind in ("copy", "move"):
        among = [each for each in places if each.startswith(("/metadata/labels/", "/data/"))]
        path = random.choice([*among, "/metadata/labels/missing"])
        return {"op": kind, "from": path, "path": random.choice(["/metadata/labels/copied", path])}
    if kind == "remove":
        return {"op": kind, "path": path}
    value = value_at(document, path)
    if random.random() < 0.5 and (path.rpartition("/")[2] in READ or not path.startswith("/spec")):
        value = random.choice(["changed", "a", 5])
    if kind == "add" and random.random() < 0.5:
        path, value = random.choice([("/metadata/labels/added", "x"), ("/metadata/annotations", {"k": "v"})])
    return {"op": kind, "path": path, "value": value}


def paths(value: Any, path: str = "") -> list[str]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, entry in value.items():
            found += paths(entry, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            found += paths(entry, f"{path}/{index}")
    return found


def value_at(document: Any, path: str) -> Any:
    for written in path.split("/")[1:]:
        step = written.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return document
