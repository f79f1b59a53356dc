"""What Pod Security Standards forbid: one function per check, with the words of k8s.io/pod-security-admission 0.35.

Used by pod_security.py, in the order of the tables at the end, which say since which minor of Kubernetes a check holds
and which of baseline's a stricter one replaces. A check looks at a pod's document and gives what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from wukong.embedded.store.documents import meta_of
from wukong.ports import Document

Violation = tuple[str, str]  # the reason, and the detail in parentheses behind it
_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_SYSCTLS_SINCE = {
    "kernel.shm_rmid_forced": 0, "net.ipv4.ip_local_port_range": 0, "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0, "net.ipv4.ip_unprivileged_port_start": 0, "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29, "net.ipv4.tcp_fin_timeout": 29, "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29, "net.ipv4.tcp_rmem": 32, "net.ipv4.tcp_wmem": 32,
}  # fmt: skip
_SELINUX_TYPES_SINCE = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
_RESTRICTED_VOLUMES = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
})  # fmt: skip
_OTHER_VOLUMES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd",
    "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk",
    "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = ("RuntimeDefault", "Localhost")


class CheckedPod:
    """A pod as checks look at it, by the standard of a minor of Kubernetes."""

    def __init__(self, pod: Document, minor: int) -> None:
        self.minor = minor
        self.spec: Document = pod.get("spec") or {}
        self.annotations: dict[str, str] = meta_of(pod).get("annotations") or {}
        fields = ("initContainers", "containers", "ephemeralContainers")
        self.containers: list[Document] = [container for field in fields for container in self.spec.get(field) or ()]

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        return self.spec.get("hostUsers") is False

    def name_containers(self, is_bad: Callable[[Document], Any]) -> list[str]:
        """The containers whose securityContext is so."""
        return [container["name"] for container in self.containers if is_bad(_context_of(container))]

    def name_setters(self, is_bad: Callable[[Document], Any]) -> str:
        """The pod and the containers whose securityContext is so: `pod and container "a"`."""
        setters = ["pod"] if is_bad(_context_of(self.spec)) else []
        containers = self.name_containers(is_bad)
        return " and ".join([*setters, *([_name(containers)] if containers else [])])

    def list_values(self, value_of: Callable[[Document], str | None]) -> list[str]:
        """What securityContexts of the pod and its containers say that is bad, sorted."""
        values = (value_of(_context_of(holder)) for holder in (self.spec, *self.containers))
        return sorted({value for value in values if value is not None})


class Check(NamedTuple):
    name: str
    find: Callable[[CheckedPod], Violation | None]
    since: int = 0
    replaces: str = ""


def _context_of(holder: Document) -> Document:
    return holder.get("securityContext") or {}


def _quote(names: Iterable[str]) -> str:
    return '"' + '", "'.join(names) + '"'


def _plural(word: str, things: list[str]) -> str:
    return word if len(things) == 1 else f"{word}s"


def _name(containers: list[str], word: str = "container") -> str:
    return f"{_plural(word, containers)} {_quote(containers)}"


def _use(names: list[str]) -> str:
    return "uses" if len(names) == 1 else "use"


# ---- baseline


def _find_app_armor(pod: CheckedPod) -> Violation | None:
    def bad_type_of(context: Document) -> str | None:
        profile = context.get("appArmorProfile")
        return profile.get("type", "") if profile is not None and profile.get("type") not in _PROFILES else None

    setters = pod.name_setters(lambda context: bad_type_of(context) is not None)
    values = pod.list_values(bad_type_of)
    annotations = sorted(
        f'{name}="{value}"'
        for name, value in pod.annotations.items()
        if name.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        values += annotations
        setters = " and ".join(filter(None, (setters, _plural("annotation", annotations))))
    if not setters:
        return None
    detail = f"{setters} must not set AppArmor profile type to {_quote(values)}"
    return _plural("forbidden AppArmor profile", values), detail


def _find_capabilities(pod: CheckedPod) -> Violation | None:
    added: set[str] = set()

    def adds(context: Document) -> bool:
        more = set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        added.update(more)
        return bool(more)

    names = pod.name_containers(adds)
    if not names:
        return None
    detail = f"{_name(names)} must not include {_quote(sorted(added))} in securityContext.capabilities.add"
    return "non-default capabilities", detail


def _find_host_namespaces(pod: CheckedPod) -> Violation | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return ("host namespaces", ", ".join(used)) if used else None


def _find_host_paths(pod: CheckedPod) -> Violation | None:
    names = [volume["name"] for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    return ("hostPath volumes", _name(names, "volume")) if names else None


def _find_host_ports(pod: CheckedPod) -> Violation | None:
    ports = {container["name"]: _host_ports_of(container) for container in pod.containers}
    names = [container["name"] for container in pod.containers if ports[container["name"]]]
    if not names:
        return None
    used = sorted({str(port) for entries in ports.values() for port in entries})
    return "hostPort", f"{_name(names)} {_use(names)} {_plural('hostPort', used)} {', '.join(used)}"


def _host_ports_of(container: Document) -> list[int]:
    return [port["hostPort"] for port in container.get("ports") or () if port.get("hostPort")]


def _find_host_probes(pod: CheckedPod) -> Violation | None:
    hosts = {container["name"]: _hosts_of(container) for container in pod.containers}
    names = sorted(name for name, entries in hosts.items() if entries)
    if not names:
        return None
    used = sorted({host for entries in hosts.values() for host in entries})
    word = _plural("probe or lifecycle host", used)
    return "probe or lifecycle host", f"{_name(names)} {_use(names)} {word} {_quote(used)}"


def _hosts_of(container: Document) -> list[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(name) for name in ("postStart", "preStop")]
    actions = [(handler or {}).get(name) or {} for handler in handlers for name in ("httpGet", "tcpSocket")]
    return [action["host"] for action in actions if action.get("host")]


def _find_privileged(pod: CheckedPod) -> Violation | None:
    names = pod.name_containers(lambda context: context.get("privileged"))
    return ("privileged", f"{_name(names)} must not set securityContext.privileged=true") if names else None


def _find_proc_mounts(pod: CheckedPod, *, is_relaxed: bool) -> Violation | None:
    if is_relaxed and pod.minor >= 35 and pod.has_user_namespace:
        return None
    types: set[str] = set()

    def is_bad(context: Document) -> bool:
        type_ = context.get("procMount", "Default")
        types.update({type_} - {"Default"})
        return bool(type_ != "Default")

    names = pod.name_containers(is_bad)
    if not names:
        return None
    return "procMount", f"{_name(names)} must not set securityContext.procMount to {_quote(sorted(types))}"


def _find_selinux(pod: CheckedPod) -> Violation | None:
    options = [_context_of(holder).get("seLinuxOptions") or {} for holder in (pod.spec, *pod.containers)]

    def has_bad_type(entry: Document) -> bool:
        return _SELINUX_TYPES_SINCE.get(entry.get("type", ""), 99) > pod.minor

    def is_bad(context: Document) -> bool:
        entry = context.get("seLinuxOptions") or {}
        return bool(has_bad_type(entry) or entry.get("user") or entry.get("role"))

    setters = pod.name_setters(is_bad)
    if not setters:
        return None
    types = sorted({entry["type"] for entry in options if has_bad_type(entry)})
    data = [f"{_plural('type', types)} {_quote(types)}"] if types else []
    data += [f"{name} may not be set" for name in ("user", "role") if any(entry.get(name) for entry in options)]
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def _find_seccomp(pod: CheckedPod) -> Violation | None:
    if pod.minor < 19:
        return _find_seccomp_annotations(pod)
    setters = pod.name_setters(lambda context: _bad_seccomp_of(context) is not None)
    if not setters:
        return None
    values = _quote(pod.list_values(_bad_seccomp_of))
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {values}"


def _bad_seccomp_of(context: Document) -> str | None:
    profile = context.get("seccompProfile")
    return profile.get("type", "") if profile is not None and profile.get("type") not in _PROFILES else None


def _find_seccomp_annotations(pod: CheckedPod) -> Violation | None:
    names = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{container['name']}" for container in pod.containers)]
    bad = sorted(
        {
            f'{name}="{pod.annotations[name]}"'
            for name in names
            if name in pod.annotations and not _is_seccomp_allowed(pod.annotations[name])
        }
    )
    return ("seccompProfile", f"forbidden {_plural('annotation', bad)} {', '.join(bad)}") if bad else None


def _is_seccomp_allowed(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def _find_sysctls(pod: CheckedPod) -> Violation | None:
    names = [sysctl.get("name", "") for sysctl in _context_of(pod.spec).get("sysctls") or ()]
    bad = [name for name in names if _SYSCTLS_SINCE.get(name, 99) > pod.minor]
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _find_host_process(pod: CheckedPod) -> Violation | None:
    setters = pod.name_setters(lambda context: (context.get("windowsOptions") or {}).get("hostProcess"))
    return (
        ("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true") if setters else None
    )


# ---- restricted


def _find_escalation(pod: CheckedPod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    names = pod.name_containers(lambda context: context.get("allowPrivilegeEscalation") is not False)
    detail = f"{_name(names)} must set securityContext.allowPrivilegeEscalation=false"
    return ("allowPrivilegeEscalation != false", detail) if names else None


def _find_unrestricted_capabilities(pod: CheckedPod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    added: set[str] = set()

    def adds(context: Document) -> bool:
        more = set((context.get("capabilities") or {}).get("add") or ()) - {"NET_BIND_SERVICE"}
        added.update(more)
        return bool(more)

    keeping = pod.name_containers(lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()))
    adding = pod.name_containers(adds)
    details = [f'{_name(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        list_ = _quote(sorted(added))
        details.append(f"{_name(adding)} must not include {list_} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _find_restricted_volumes(pod: CheckedPod) -> Violation | None:
    bad = [volume for volume in pod.spec.get("volumes") or () if not _RESTRICTED_VOLUMES & set(volume)]
    if not bad:
        return None
    names = [volume["name"] for volume in bad]
    types = sorted({next((name for name in _OTHER_VOLUMES if name in volume), "unknown") for volume in bad})
    word = _plural("restricted volume type", types)
    return "restricted volume types", f"{_name(names, 'volume')} {_use(names)} {word} {_quote(types)}"


def _find_root(pod: CheckedPod) -> Violation | None:
    if pod.minor >= 35 and pod.has_user_namespace:
        return None
    setters = pod.name_setters(lambda context: context.get("runAsNonRoot") is False)
    if setters:
        return "runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false"
    if _context_of(pod.spec).get("runAsNonRoot"):
        return None
    names = pod.name_containers(lambda context: context.get("runAsNonRoot") is None)
    detail = f"pod or {_name(names)} must set securityContext.runAsNonRoot=true"
    return ("runAsNonRoot != true", detail) if names else None


def _find_root_user(pod: CheckedPod) -> Violation | None:
    if pod.minor >= 35 and pod.has_user_namespace:
        return None
    setters = pod.name_setters(lambda context: context.get("runAsUser") == 0)
    return ("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _find_missing_seccomp(pod: CheckedPod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    violation = _find_seccomp(pod)
    if violation is not None or _context_of(pod.spec).get("seccompProfile") is not None:
        return violation
    names = pod.name_containers(lambda context: context.get("seccompProfile") is None)
    allowed = '"RuntimeDefault" or "Localhost"'
    detail = f"pod or {_name(names)} must set securityContext.seccompProfile.type to {allowed}"
    return ("seccompProfile", detail) if names else None


BASELINE = (
    Check("appArmorProfile", _find_app_armor),
    Check("capabilities_baseline", _find_capabilities),
    Check("hostNamespaces", _find_host_namespaces),
    Check("hostPathVolumes", _find_host_paths),
    Check("hostPorts", _find_host_ports),
    Check("hostProbesAndHostLifecycle", _find_host_probes, 34),
    Check("privileged", _find_privileged),
    Check("procMount", partial(_find_proc_mounts, is_relaxed=True)),
    Check("seLinuxOptions", _find_selinux),
    Check("seccompProfile_baseline", _find_seccomp),
    Check("sysctls", _find_sysctls),
    Check("windowsHostProcess", _find_host_process),
)
RESTRICTED = (
    Check("allowPrivilegeEscalation", _find_escalation, 8),
    Check("capabilities_restricted", _find_unrestricted_capabilities, 22, "capabilities_baseline"),
    Check("procMount_restricted", partial(_find_proc_mounts, is_relaxed=False), 35, "procMount"),
    Check("restrictedVolumes", _find_restricted_volumes, 0, "hostPathVolumes"),
    Check("runAsNonRoot", _find_root),
    Check("runAsUser", _find_root_user, 23),
    Check("seccompProfile_restricted", _find_missing_seccomp, 19, "seccompProfile_baseline"),
)
