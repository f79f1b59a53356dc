"""A pod's spec as a whole, and pod templates. Called by validation/objects.py; pure."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.store.validation.pods.containers import PodContext, find_all_container_problems
from wukong.embedded.store.validation.pods.problems import (
    duplicate,
    find_outside,
    find_unsupported,
    forbidden,
    invalid,
    required,
)
from wukong.embedded.store.validation.pods.resources import find_overhead_problems, find_pod_level_problems
from wukong.embedded.store.validation.pods.scheduling import (
    find_affinity_problems,
    find_spread_problems,
    find_toleration_problems,
)
from wukong.embedded.store.validation.pods.security import find_pod_security_problems
from wukong.embedded.store.validation.pods.syntax import (
    find_address_problems,
    find_key_problems,
    find_label_problems,
    find_name_problems,
    find_subdomain_problems,
)
from wukong.embedded.store.validation.pods.volumes import find_volume_problems
from wukong.ports import Document

_MAX_SECONDS = 2**31 - 1
_CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_SUBDOMAINS = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")


def find_template_problems(template: Document, path: str) -> Iterator[str]:
    """Check a pod template, all but which restart policies its workload allows."""
    yield from find_label_problems((template.get("metadata") or {}).get("labels"), f"{path}.labels")
    spec = template.get("spec") or {}
    yield from find_pod_spec_problems(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def find_pod_spec_problems(spec: Document, path: str, more_volumes: dict[str, Document] | None = None) -> Iterator[str]:
    """Check a pod's spec in its stored form. `more_volumes` are those that its StatefulSet gives it."""
    problems, volumes = find_volume_problems(spec.get("volumes") or [], f"{path}.volumes")
    yield from problems
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or []]
    context = PodContext(
        volumes={**volumes, **(more_volumes or {})},
        claims=frozenset(claims),
        restart_policy=spec.get("restartPolicy", ""),
        grace_seconds=spec.get("terminationGracePeriodSeconds"),
        has_host_users=spec.get("hostUsers") is not False,
    )
    yield from find_all_container_problems(spec, context, path)
    if "resources" in spec:
        yield from find_pod_level_problems(spec, path)
    yield from _find_claim_problems(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    yield from _find_host_problems(spec, path)
    for field, choices in _CHOICES.items():
        yield from find_unsupported(spec.get(field), choices, f"{path}.{field}")
    yield from find_label_problems(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from find_pod_security_problems(spec.get("securityContext") or {}, spec, f"{path}.securityContext")
    yield from find_affinity_problems(spec.get("affinity") or {}, f"{path}.affinity")
    yield from find_spread_problems(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    yield from find_toleration_problems(spec.get("tolerations") or [], f"{path}.tolerations")
    yield from _find_dns_problems(spec, f"{path}.dnsConfig")
    yield from _find_gate_problems(spec, path)
    yield from _find_name_problems(spec, path)
    yield from find_outside(spec.get("activeDeadlineSeconds"), 1, _MAX_SECONDS, f"{path}.activeDeadlineSeconds")
    yield from find_overhead_problems(spec.get("overhead") or {}, f"{path}.overhead")
    if "os" in spec:
        yield from _find_os_problems(spec, path)


def _find_claim_problems(claims: list[Document], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        else:
            yield from find_name_problems(name, f"{here}.name")
        seen.add(name)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(here, claim, detail)
        # One is needed, but a reduced snapshot keeps neither (cluster/reduction.py): it passes.


def _find_host_problems(spec: Document, path: str) -> Iterator[str]:
    """Check what follows from sharing the host's network, and from having users of one's own."""
    if spec.get("hostNetwork"):
        for kind in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(kind) or []):
                for number, port in enumerate(container.get("ports") or []):
                    if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                        place = f"{path}.{kind}[{index}].ports[{number}].hostPort"
                        detail = "must match `containerPort` when `hostNetwork` is true"
                        yield invalid(place, port["hostPort"], detail)
        if spec.get("hostnameOverride") is not None:
            yield forbidden(f"{path}.hostnameOverride", "may not be specified when hostNetwork is true")
    if spec.get("hostUsers") is False:
        for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):  # spelled so by a real server
                yield forbidden(f"{path}.{name}", "when `hostUsers` is false")


def _find_dns_problems(spec: Document, path: str) -> Iterator[str]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    config = config or {}
    if len(config.get("nameservers") or []) > 3:
        yield invalid(f"{path}.nameservers", config["nameservers"], "must not have more than 3 nameservers")
    for index, server in enumerate(config.get("nameservers") or []):
        yield from find_address_problems(server, f"{path}.nameservers[{index}]")
    for index, option in enumerate(config.get("options") or []):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _find_gate_problems(spec: Document, path: str) -> Iterator[str]:
    for index, gate in enumerate(spec.get("readinessGates") or []):
        place = f"{path}.readinessGates[{index}].conditionType"
        yield from find_key_problems(gate.get("conditionType", ""), place)
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        place, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        yield from find_key_problems(name, place)
        if name in seen:
            yield duplicate(place, name)
        seen.add(name)


def _find_name_problems(spec: Document, path: str) -> Iterator[str]:
    for field in _SUBDOMAINS:
        if spec.get(field):
            yield from find_subdomain_problems(spec[field], f"{path}.{field}")
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from find_name_problems(spec[field], f"{path}.{field}")
    for index, alias in enumerate(spec.get("hostAliases") or []):
        yield from find_address_problems(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip")
        for number, name in enumerate(alias.get("hostnames") or []):
            yield from find_subdomain_problems(name, f"{path}.hostAliases[{index}].hostnames[{number}]")
    for index, secret in enumerate(spec.get("imagePullSecrets") or []):
        if not secret.get("name"):
            yield required(f"{path}.imagePullSecrets[{index}].name")


def _find_os_problems(spec: Document, path: str) -> Iterator[str]:
    """A pod for one operating system cannot have what only the other knows."""
    name = spec["os"].get("name", "")
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield from find_unsupported(name, ("linux", "windows"), f"{path}.os")
    elif name == "linux":
        if "windowsOptions" in (spec.get("securityContext") or {}):
            yield forbidden(f"{path}.securityContext.windowsOptions", "windows options cannot be set for a linux pod")
    else:
        for field in ("hostPID", "hostIPC", "shareProcessNamespace", "hostUsers", "resources"):
            if field in spec:
                yield forbidden(f"{path}.{field}", "cannot be set for a windows pod")
        context = spec.get("securityContext") or {}
        linux = ("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls")
        more = ("runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy")
        for field in (*linux, *more):
            if field in context:
                yield forbidden(f"{path}.securityContext.{field}", "cannot be set for a windows pod")
        yield from _find_windows_container_problems(spec, path)


def _find_windows_container_problems(spec: Document, path: str) -> Iterator[str]:
    fields = (
        *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem"),
        *("privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
    )
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            for field in fields:
                if field in (container.get("securityContext") or {}):
                    place = f"{path}.{kind}[{index}].securityContext.{field}"
                    yield forbidden(place, "cannot be set for a windows pod")
