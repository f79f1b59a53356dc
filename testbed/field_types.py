"""Writes src/wukong/api/field_types_data.py: which fields Kubernetes' kinds have, of which types, and how they merge.

    python -m testbed.field_types           prints the module, from the Go sources the control plane is built from
    make field-types                        writes it; tests/kinds/test_field_types.py compares it with a real server

Reads Go structs with their tags and markers, which say more than the OpenAPI documents of a server: also which fields
keep a zero. Takes names and types only, no descriptions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MODULE = Path(__file__).parent / "controlplane"
# Where the kinds live: a prefix for their types, the Go module, the folder in it, and the kinds to begin with.
GROUPS = (
    ("meta", "k8s.io/apimachinery", "pkg/apis/meta/v1", ""),
    ("", "k8s.io/api", "core/v1", "Node Pod PodTemplate Namespace Service ReplicationController PersistentVolume "
     "PersistentVolumeClaim ConfigMap Secret ServiceAccount ResourceQuota LimitRange Endpoints Event"),
    ("apps", "k8s.io/api", "apps/v1", "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision"),
    ("batch", "k8s.io/api", "batch/v1", "Job CronJob"),
    ("policy", "k8s.io/api", "policy/v1", "PodDisruptionBudget"),
    ("scheduling.k8s.io", "k8s.io/api", "scheduling/v1", "PriorityClass"),
    ("storage.k8s.io", "k8s.io/api", "storage/v1",
     "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment"),
    ("autoscaling", "k8s.io/api", "autoscaling/v2", "HorizontalPodAutoscaler"),
    ("discovery.k8s.io", "k8s.io/api", "discovery/v1", "EndpointSlice"),
    ("coordination.k8s.io", "k8s.io/api", "coordination/v1", "Lease"),
    ("events.k8s.io", "k8s.io/api", "events/v1", "Event"),
    ("node.k8s.io", "k8s.io/api", "node/v1", "RuntimeClass"),
    ("apiextensions.k8s.io", "k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1", "CustomResourceDefinition"),
)  # fmt: skip
IMPORTS = {"v1": "", "apiv1": "", "core": "", "corev1": "", "metav1": "meta"}  # what Go sources call the packages above
SCALARS = {
    "string": "string", "bool": "bool", "int": "int64", "int32": "int32", "int64": "int64", "float64": "float",
    "resource.Quantity": "quantity", "intstr.IntOrString": "int-or-string", "byte": "byte",
    "metav1.Time": "time", "metav1.MicroTime": "time", "Time": "time", "MicroTime": "time", "metav1.Duration": "string",
    "runtime.RawExtension": "any", "FieldsV1": "any", "metav1.FieldsV1": "any", "types.UID": "string",
    "JSON": "any", "JSONSchemaPropsOrArray": "any", "JSONSchemaPropsOrBool": "any",
    "JSONSchemaPropsOrStringArray": "any", "runtime.Object": "any", "types.NodeName": "string",
}  # fmt: skip
_STRUCT = re.compile(r"((?:^//[^\n]*\n)*)^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_EMPTY = re.compile(r"^type (\w+) struct ?\{\s*\}", re.MULTILINE)
_NAMED = re.compile(r"^type (\w+) (=? ?[\w.\[\]*]+)$", re.MULTILINE)
_CONSTANT = re.compile(r'^\s*(\w+)\s+[\w.]*\s*=\s*("[^"]*")', re.MULTILINE)
_FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([\w.\[\]*]+)\s+`([^`]*)`")


class Type(NamedTuple):
    """A Go struct: its markers and the lines of its body; or the name of what a named type stands for."""

    group: str
    markers: str = ""
    body: str = ""
    stands_for: str = ""


class Sources:
    def __init__(self) -> None:
        self.types: dict[tuple[str, str], Type] = {}
        self.constants: dict[str, str] = {}
        for group, module, folder, _ in GROUPS:
            for file in sorted((_folder_of(module) / folder).glob("*types*.go")):
                if "swagger" not in file.name and not file.name.endswith("_test.go"):
                    self._read(group, file.read_text())

    def _read(self, group: str, text: str) -> None:
        for match in _STRUCT.finditer(text):
            self.types[group, match[2]] = Type(group, match[1], match[3])
        for match in _EMPTY.finditer(text):
            self.types[group, match[1]] = Type(group)
        for match in _NAMED.finditer(text):
            self.types.setdefault((group, match[1]), Type(group, stands_for=match[2].lstrip("= ")))
        self.constants.update(dict(_CONSTANT.findall(text)))


def _folder_of(module: str) -> Path:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    return Path(subprocess.run(command, cwd=MODULE, check=True, capture_output=True, text=True).stdout.strip())


def write_table() -> str:
    """Return the table: a line for each type, followed by one for each of its fields, indented."""
    sources, lines = Sources(), list[str]()
    queue = [(group, kind) for group, _, _, kinds in GROUPS for kind in kinds.split()]
    kinds = set(queue)
    seen = set(queue)
    for key in queue:  # grows meanwhile
        type_ = sources.types[key]
        atomic = " atomic" if "+structType=atomic" in type_.markers or "+mapType=atomic" in type_.markers else ""
        lines.append(f"{_name_of(key)}{' kind' if key in kinds else ''}{atomic}")
        for field in _fields_of(sources, key):
            lines.append(f" {field.text}")
            if field.refers is not None and field.refers not in seen:
                seen.add(field.refers)
                queue.append(field.refers)
    return "\n".join(lines) + "\n"


class Field(NamedTuple):
    text: str
    refers: tuple[str, str] | None


def _fields_of(sources: Sources, key: tuple[str, str]) -> Iterator[Field]:
    group, comments = key[0], list[str]()
    for line in sources.types[key].body.splitlines():
        if line.strip().startswith("//"):
            comments.append(line.strip().removeprefix("//").strip())
            continue
        match = _FIELD.match(line)
        if match is None:
            comments = []
            continue
        tag = re.search(r'json:"([^"]*)"', match[3])
        name, *options = tag[1].split(",") if tag else [""]
        if "inline" in options or (not name and tag):
            inner = _key_of(group, match[2])
            yield from _fields_of(sources, inner)
        elif name and name != "-":
            yield _describe(sources, group, name, options, match[2], match[3], comments)
        comments = []


def _describe(
    sources: Sources, group: str, name: str, options: list[str], go_type: str, tags: str, comments: list[str]
) -> Field:
    type_text, refers = _spell(sources, group, go_type.removeprefix("*"))
    words = [name, type_text]
    if go_type.startswith("*"):
        words.append("pointer")
    if "omitempty" not in options:
        words.append("always")
    markers = dict(text.removeprefix("+").partition("=")[::2] for text in comments if text.startswith("+"))
    keys = [text.partition("=")[2] for text in comments if text.startswith("+listMapKey=")]
    if markers.get("listType") in ("atomic", "set"):
        words.append(markers["listType"])
    if "atomic" in (markers.get("mapType"), markers.get("structType")):
        words.append("atomic")
    if keys:
        words.append(f"keys={','.join(keys)}")
    strategy = re.search(r'patchStrategy:"([^"]*)"', tags)
    merge_key = re.search(r'patchMergeKey:"([^"]*)"', tags)
    if strategy and "merge" in strategy[1]:
        words.append(f"merge={merge_key[1] if merge_key else ''}")
    if strategy:
        words += [word for word in ("replace", "retainKeys") if word in strategy[1].split(",")]
    if "default" in markers:
        words.append(f"default={_constant(sources, markers['default'])}")
    return Field(" ".join(words), refers)


def _constant(sources: Sources, text: str) -> str:
    referred = re.fullmatch(r"ref\((\w+)\)", text)
    value = json.loads(sources.constants[referred[1]] if referred else text)
    return json.dumps(value, separators=(",", ":"))


def _spell(sources: Sources, group: str, go_type: str) -> tuple[str, tuple[str, str] | None]:
    """Return a Go type in the words of the table, and the struct that it refers to."""
    if go_type in ("[]byte",):
        return "bytes", None
    if go_type.startswith("[]"):
        text, refers = _spell(sources, group, go_type[2:].removeprefix("*"))
        return f"[{text}]", refers
    if go_type.startswith("map["):
        text, refers = _spell(sources, group, go_type.partition("]")[2])
        return f"{{{text}}}", refers
    if go_type in SCALARS:
        return SCALARS[go_type], None
    key = _key_of(group, go_type)
    type_ = sources.types[key]
    if type_.stands_for:
        return _spell(sources, key[0], type_.stands_for)
    if key[1] in SCALARS:
        return SCALARS[key[1]], None
    return _name_of(key), key


def _key_of(group: str, go_type: str) -> tuple[str, str]:
    package, _, name = go_type.rpartition(".")
    return (IMPORTS[package] if package else group), name


def _name_of(key: tuple[str, str]) -> str:
    return ".".join(filter(None, reversed(key)))


def main() -> None:
    head = '"""Fields of Kubernetes\' kinds, for field_types.py. Generated by `make field-types`; do not edit."""\n\n'
    sys.stdout.write(f'{head}TABLE = """\\\n{write_table()}"""\n')


if __name__ == "__main__":
    main()
