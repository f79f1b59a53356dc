"""Containers of all sorts: names, images, ports, variables, mounts, policies. Called by spec.py; pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.embedded.store.validation.pods.handlers import PROBES, find_probe_problems
from wukong.embedded.store.validation.pods.problems import (
    duplicate,
    find_outside,
    find_unsupported,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from wukong.embedded.store.validation.pods.resources import find_resource_problems
from wukong.embedded.store.validation.pods.security import find_container_security_problems
from wukong.embedded.store.validation.pods.syntax import (
    find_backstep_problems,
    find_local_path_problems,
    find_name_problems,
    find_port_name_problems,
    find_variable_problems,
)
from wukong.ports import Document

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_POD_FIELDS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
})  # fmt: skip
_PROTOCOLS = ("SCTP", "TCP", "UDP")


class PodContext(msgspec.Struct):
    """What containers are checked against: the rest of their pod."""

    volumes: dict[str, Document]
    claims: frozenset[str]
    restart_policy: str
    grace_seconds: int | None
    has_host_users: bool


def find_all_container_problems(spec: Document, pod: PodContext, path: str) -> Iterator[str]:
    """Check the containers and the init containers of a pod."""
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    names, host_ports = set[str](), set[tuple[object, ...]]()
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        yield from _find_container_problems(container, pod, here)
        yield from _find_restart_problems(container, here)
        yield from find_probe_problems(container, pod.grace_seconds, here)
        yield from _find_repeated_name(container, names, here)
        yield from _find_repeated_host_ports(container, host_ports, here)
    for index, container in enumerate(spec.get("initContainers") or []):
        here = f"{path}.initContainers[{index}]"
        yield from _find_container_problems(container, pod, here)
        yield from _find_repeated_name(container, names, here)
        yield from _find_repeated_host_ports(container, set(), here)
        if container.get("restartPolicy") == "Always":
            yield from find_probe_problems(container, pod.grace_seconds, here)
        else:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield from (forbidden(f"{here}.{name}", detail) for name in ("lifecycle", *PROBES) if name in container)
        yield from _find_restart_problems(container, here)


def _find_repeated_name(container: Document, names: set[str], path: str) -> Iterator[str]:
    name = container.get("name", "")
    if name in names:
        yield duplicate(f"{path}.name", name)
    if name:
        names.add(name)


def _find_repeated_host_ports(container: Document, seen: set[tuple[object, ...]], path: str) -> Iterator[str]:
    for index, port in enumerate(container.get("ports") or []):
        if port.get("hostPort"):
            key = (port.get("protocol"), port.get("hostIP", ""), port["hostPort"])
            if key in seen:
                text = f"{key[0]}/{key[1]}/{key[2]}"
                yield duplicate(f"{path}.ports[{index}].hostPort", text)
            seen.add(key)


def _find_restart_problems(container: Document, path: str) -> Iterator[str]:
    """Check the policy by which one container is restarted, and the rules that refine it."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    yield from find_unsupported(policy, ("Always", "Never", "OnFailure"), f"{path}.restartPolicy")
    if rules and policy is None:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        yield from find_unsupported(rule.get("action"), ("Restart", "RestartAllContainers")[:1], f"{here}.action")


def _find_container_problems(container: Document, pod: PodContext, path: str) -> Iterator[str]:
    name = container.get("name", "")
    if name:
        yield from find_name_problems(name, f"{path}.name")
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    elif container["image"].strip() != container["image"]:
        yield invalid(f"{path}.image", container["image"], "must not have leading or trailing whitespace")
    yield from find_unsupported(
        container.get("terminationMessagePolicy"),
        ("File", "FallbackToLogsOnError"),
        f"{path}.terminationMessagePolicy",
    )
    policies = ("Always", "IfNotPresent", "Never")
    yield from find_unsupported(container.get("imagePullPolicy"), policies, f"{path}.imagePullPolicy")
    yield from _find_port_problems(container.get("ports") or [], f"{path}.ports")
    for index, variable in enumerate(container.get("env") or []):
        yield from _find_variable_problems(variable, f"{path}.env[{index}]")
        file = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if file is not None and file.get("volumeName") and file["volumeName"] not in pod.volumes:
            yield not_found(f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName", file["volumeName"])
    for index, source in enumerate(container.get("envFrom") or []):
        yield from _find_env_source_problems(source, f"{path}.envFrom", index)
    yield from _find_mount_problems(container, pod.volumes, f"{path}.volumeMounts")
    yield from _find_device_problems(container, pod.volumes, f"{path}.volumeDevices")
    if container.get("volumeDevices") and not pod.has_host_users:
        yield forbidden(f"{path}.volumeDevices", "when `hostUsers` is false")
    yield from find_resource_problems(container.get("resources") or {}, f"{path}.resources", pod.claims)
    yield from _find_resize_problems(container.get("resizePolicy") or [], pod.restart_policy, f"{path}.resizePolicy")
    if (context := container.get("securityContext")) is not None:
        place = f"{path}.securityContext"
        yield from find_container_security_problems(context, place, has_host_users=pod.has_host_users)


def _find_port_problems(ports: list[Document], path: str) -> Iterator[str]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if name := port.get("name"):
            problems = list(find_port_name_problems(name, f"{here}.name"))
            yield from problems
            if not problems and name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{here}.containerPort")
        else:
            yield from find_outside(port["containerPort"], 1, 65535, f"{here}.containerPort")
        if port.get("hostPort"):
            yield from find_outside(port["hostPort"], 1, 65535, f"{here}.hostPort")
        yield from find_unsupported(port.get("protocol"), _PROTOCOLS, f"{here}.protocol")


def _find_variable_problems(variable: Document, path: str) -> Iterator[str]:
    yield from find_variable_problems(variable.get("name", ""), f"{path}.name")
    source = variable.get("valueFrom")
    if source is None:
        return
    here, names = f"{path}.valueFrom", [name for name in _SOURCES if name in source]
    for name in names:
        yield from _find_reference_problems(name, source[name], f"{here}.{name}")
    if not names:
        sources = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield invalid(here, "", f"must specify one of: {sources} or `{_SOURCES[-1]}`")
    elif variable.get("value"):
        yield invalid(here, "", "may not be specified when `value` is not empty")
    elif len(names) > 1:
        yield invalid(here, "", "may not have more than one field specified at a time")


def _find_reference_problems(name: str, reference: Document, path: str) -> Iterator[str]:
    if name in ("configMapKeyRef", "secretKeyRef"):
        yield from (required(f"{path}.{field}") for field in ("name", "key") if not reference.get(field))
    elif name == "fileKeyRef":
        yield from (required(f"{path}.{field}") for field in ("key", "volumeName", "path") if not reference.get(field))
    elif name == "resourceFieldRef":
        if not reference.get("resource"):
            yield required(f"{path}.resource")
    elif not reference.get("fieldPath"):
        yield required(f"{path}.fieldPath")
    else:
        text = reference["fieldPath"]
        is_entry = text.startswith(("metadata.labels['", "metadata.annotations['")) and text.endswith("']")
        if text not in _POD_FIELDS and not is_entry:
            yield invalid(f"{path}.fieldPath", text, f"error converting fieldPath: field label not supported: {text}")


def _find_env_source_problems(source: Document, path: str, index: int) -> Iterator[str]:
    names = [name for name in ("configMapRef", "secretRef") if name in source]
    if source.get("prefix"):
        yield from find_variable_problems(source["prefix"], f"{path}[{index}].prefix")
    for name in names:
        if not source[name].get("name"):
            yield required(f"{path}[{index}].{name}.name")
    if not names:
        yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(names) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _find_mount_problems(container: Document, volumes: dict[str, Document], path: str) -> Iterator[str]:
    """Some problems of a mount are at the list's path: so a server says it."""
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or []}
    is_privileged = (container.get("securityContext") or {}).get("privileged")
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        here, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{here}.name")
        if name not in volumes:
            yield not_found(f"{here}.name", name)
        if not place:
            yield required(f"{here}.mountPath")
        if place in seen:
            yield invalid(f"{here}.mountPath", place, "must be unique")
        seen.add(place)
        if name in devices:
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if place in devices.values():
            yield invalid(f"{here}.mountPath", place, "must not already exist as a path in volumeDevices")
        for field in ("subPath", "subPathExpr"):
            yield from find_local_path_problems(mount.get(field, ""), f"{path}.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield invalid(f"{here}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
        propagation = mount.get("mountPropagation")
        modes = ("Bidirectional", "HostToContainer", "None")
        yield from find_unsupported(propagation, modes, f"{path}.mountPropagation")
        if propagation == "Bidirectional" and not is_privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{path}.mountPropagation", detail)
        yield from _find_recursion_problems(mount, f"{path}.recursiveReadOnly")


def _find_recursion_problems(mount: Document, path: str) -> Iterator[str]:
    mode = mount.get("recursiveReadOnly")
    if mode in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            yield forbidden(path, "may only be specified when mountPropagation is None or not specified")
    else:
        yield from find_unsupported(mode, ("Disabled", "IfPossible", "Enabled"), path)


def _find_device_problems(container: Document, volumes: dict[str, Document], path: str) -> Iterator[str]:
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or []}
    names, places = set[str](), set[str]()
    for index, device in enumerate(container.get("volumeDevices") or []):
        here, name, place = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            yield required(f"{here}.name")
        if name in names:
            yield invalid(f"{here}.name", name, "must be unique")
        if name not in volumes:
            yield not_found(f"{here}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{here}.name", name, detail)
        if not place:
            yield required(f"{here}.devicePath")
        if place in places:
            yield invalid(f"{here}.devicePath", place, "must be unique")
        yield from find_backstep_problems(place, f"{here}.devicePath")
        if name in mounts:
            yield invalid(f"{here}.name", name, "must not already exist in volumeMounts")
        if place in mounts.values():
            yield invalid(f"{here}.devicePath", place, "must not already exist as a path in volumeMounts")
        names.add(name)
        places.add(place)


def _find_resize_problems(policies: list[Document], restart_policy: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)
        for value, choices in ((name, ("cpu", "memory")), (restart, ("NotRequired", "RestartContainer"))):
            if not value:
                yield required(path)
            elif value not in choices:
                yield unsupported(path, value, choices)
        if restart_policy == "Never" and restart != "NotRequired":
            yield invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'")
