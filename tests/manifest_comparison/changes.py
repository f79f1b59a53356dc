"""What is done to an object after it was created: patches of each type and `kubectl apply`, by the subject's seed."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from manifest_comparison.objects import Subject, edit, pod_spec_of
from manifest_comparison.refusals import FIELDS, REFUSALS
from wukong.ports import PatchBody

Json = dict[str, Any]


class Change(NamedTuple):
    """A patch, or with a manifest what `kubectl apply` would send."""

    title: str
    patch: PatchBody | None = None
    manifest: Json | None = None


def list_changes(subject: Subject, seed: str, most: int = 4) -> list[Change]:
    """The unchanged manifest, its change and the way back; and some that are slips or refused."""
    random = Random(f"changes {seed}")
    before, after = subject.before, subject.after
    changes = [
        Change("the same by kubectl apply", manifest=before),
        random.choice([
            Change("the same by server-side apply", PatchBody("apply", before, manager="ci", force=True)),
            Change("the same by merge patch", PatchBody("merge", {"spec": before["spec"]})),
            Change("the same by strategic patch", PatchBody("strategic", {"spec": before["spec"]})),
        ]),
        _change_to(random, before, after),
        Change("back by kubectl apply", manifest=before),
    ]  # fmt: skip
    others = [
        _unknown_field(random, subject),
        _wrong_type(random, subject),
        _refused(random, subject),
        _refused(random, subject),
        _image(random, subject),
        _immutable(random, subject),
        _removed(random, subject),
        _label(random, subject),
    ]
    return [*changes, *random.sample(others, most)]


def _change_to(random: Random, before: Json, after: Json) -> Change:
    """The other form of the object, by a patch of any type."""
    replaced = [{"op": "replace", "path": f"/spec/{name}", "value": value} for name, value in after["spec"].items()]
    removed = [{"op": "remove", "path": f"/spec/{name}"} for name in before["spec"] if name not in after["spec"]]
    return random.choice([
        Change("changed by kubectl apply", manifest=after),
        Change("changed by kubectl apply", manifest=after),
        Change("changed by server-side apply", PatchBody("apply", after, manager="ci", force=True)),
        Change("changed by merge patch", PatchBody("merge", {"spec": _merge_diff(before["spec"], after["spec"])})),
        Change("changed by strategic patch", PatchBody("strategic", {"spec": after["spec"]})),
        Change("changed by JSON patch", PatchBody("json", [*replaced, *removed])),
    ])  # fmt: skip


def _merge_diff(before: Json, after: Json) -> Json:
    patch: Json = dict.fromkeys(name for name in before if name not in after)
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            patch[name] = _merge_diff(old, value)
        elif old != value:
            patch[name] = value
    return patch


def in_pod_spec(kind: str, fields: Json) -> Json:
    """The patch of these fields of the pods' spec."""
    return {"spec": fields} if kind == "Pod" else {"spec": {"template": {"spec": fields}}}


def _unknown_field(random: Random, subject: Subject) -> Change:
    name = random.choice(["nodeSelectr", "restartPolcy", "terminationGracePeriod"])
    way = random.choice(["merge", "strategic", "kubectl", "json", "container", "apply"])
    value: Any = random.choice(["x", 1, {"a": "b"}, ["a"], None])
    if way == "kubectl":
        return Change("unknown field by kubectl apply", manifest=edit(subject.before, {name: value}))
    if way == "container":
        return Change("unknown field in a container", manifest=edit(subject.before, {"main": {"immage": value}}))
    if way == "json":
        place = "/spec" if subject.kind == "Pod" else "/spec/template/spec"
        patch = [{"op": "add", "path": f"{place}/{name}", "value": value}]
        return Change("unknown field by JSON patch", PatchBody("json", patch))
    if way == "apply":
        patch_body = PatchBody("apply", edit(subject.before, {name: value or "x"}), manager="ci", force=True)
        return Change("unknown field by server-side apply", patch_body)
    body = {**in_pod_spec(subject.kind, {name: value}), "replica": 3}
    return Change(f"unknown field by {way} patch", PatchBody(way, body))  # type: ignore[arg-type]


def _wrong_type(random: Random, subject: Subject) -> Change:
    field, value = random.choice([
        ("terminationGracePeriodSeconds", "30"), ("hostNetwork", "yes"), ("nodeSelector", ["a"]),
        ("tolerations", {"key": "a"}), ("schedulerName", 5), ("nodeSelector", {"a": 5}), ("volumes", "none"),
        ("containers", [{"name": "main", "image": 5}]), ("containers", ["main"]), ("securityContext", []),
        ("containers", [{"name": "main", "image": "a", "env": [{"name": "A", "value": 5}]}]),
        ("containers", [{"name": "main", "image": "a", "resources": {"limits": {"cpu": "much"}}}]),
        ("activeDeadlineSeconds", 1.5), ("hostNetwork", 1),
        ("imagePullSecrets", [{"name": {}}]), ("affinity", "none"),
    ])  # fmt: skip
    fields = {field: value}
    way = random.choice(["merge", "strategic", "json", "kubectl"])
    if way == "kubectl":
        return Change(f"wrong type of {field} by kubectl apply", manifest=edit(subject.before, fields))
    if way == "json":
        place = "/spec" if subject.kind == "Pod" else "/spec/template/spec"
        patch = [{"op": "replace", "path": f"{place}/{field}", "value": value}]
        return Change(f"wrong type of {field} by JSON patch", PatchBody("json", patch))
    body = in_pod_spec(subject.kind, fields)
    return Change(f"wrong type of {field} by {way} patch", PatchBody(way, body))  # type: ignore[arg-type]


def _refused(random: Random, subject: Subject) -> Change:
    title, fields = random.choice(REFUSALS)
    return Change(f"refused: {title}", manifest=edit(subject.before, fields))


def _image(random: Random, subject: Subject) -> Change:
    containers = [{"name": "main", "image": f"web:{random.randint(3, 9)}"}]
    return Change(
        "image by strategic patch", PatchBody("strategic", in_pod_spec(subject.kind, {"containers": containers}))
    )


def _immutable(random: Random, subject: Subject) -> Change:
    path, value = random.choice(FIELDS[subject.kind])
    body: Any = value
    for name in reversed(path.split(".")):
        body = {name: body}
    return Change(f"{path} by merge patch", PatchBody("merge", body))


def _removed(random: Random, subject: Subject) -> Change:
    """A field that the object has, or a default of it, is taken away."""
    name = random.choice([
        *pod_spec_of(subject.before), "restartPolicy", "dnsPolicy", "securityContext", "schedulerName",
        "terminationGracePeriodSeconds",
    ])  # fmt: skip
    way = random.choice(["merge", "strategic"])
    return Change(f"{name} removed by {way} patch", PatchBody(way, in_pod_spec(subject.kind, {name: None})))  # type: ignore[arg-type]


def _label(random: Random, subject: Subject) -> Change:
    meta = random.choice(
        [{"labels": {"a": "b"}}, {"annotations": {"a": "b"}}, {"labels": {"a b": "c"}}, {"labels": None}]
    )
    return Change("metadata by merge patch", PatchBody("merge", {"metadata": meta}))
