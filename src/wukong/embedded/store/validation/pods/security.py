"""Security contexts of pods and containers. Called by spec.py and containers.py; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wukong.embedded.store.validation.pods.problems import (
    duplicate,
    find_unsupported,
    forbidden,
    invalid,
    required,
    unsupported,
)
from wukong.embedded.store.validation.pods.syntax import find_id_problems
from wukong.ports import Document

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")


def find_pod_security_problems(context: Document, spec: Document, path: str) -> Iterator[str]:
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from find_id_problems(context.get(field), f"{path}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from find_id_problems(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, detail)
    yield from _find_sysctl_problems(context, spec, f"{path}.sysctls")
    yield from find_unsupported(
        context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"), f"{path}.fsGroupChangePolicy"
    )
    yield from find_unsupported(
        context.get("supplementalGroupsPolicy"), ("Merge", "Strict"), f"{path}.supplementalGroupsPolicy"
    )
    # MountOption belongs to a feature that is off.
    yield from find_unsupported(context.get("seLinuxChangePolicy"), ("Recursive",), f"{path}.seLinuxChangePolicy")
    yield from _find_profile_problems(context, path)


def _find_sysctl_problems(context: Document, spec: Document, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        name, here = sysctl.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield required(here)
        elif not _SYSCTL.fullmatch(name) or len(name) > 253:
            yield invalid(here, name, "must have at most 253 characters and be a name of parts with dots or slashes")
        elif name in seen:
            yield duplicate(here, name)
        seen.add(name)
        if name.startswith("net.") and spec.get("hostNetwork"):
            yield invalid(here, name, "may not be specified when 'hostNetwork' is true")


def find_container_security_problems(context: Document, path: str, *, has_host_users: bool) -> Iterator[str]:
    for field in ("runAsUser", "runAsGroup"):
        yield from find_id_problems(context.get(field), f"{path}.{field}")
    yield from find_unsupported(context.get("procMount"), ("Default", "Unmasked"), f"{path}.procMount")
    if context.get("procMount") == "Unmasked" and has_host_users:
        yield invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    yield from _find_profile_problems(context, path)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, context, detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, context, detail)


def _find_profile_problems(context: Document, path: str) -> Iterator[str]:
    for field in ("seccompProfile", "appArmorProfile"):
        profile = context.get(field)
        if profile is None:
            continue
        here, type_, name = f"{path}.{field}", profile.get("type", ""), profile.get("localhostProfile")
        if type_ == "Localhost" and not name:
            yield required(f"{here}.localhostProfile", "must be set when type is Localhost")
        elif type_ != "Localhost" and name is not None:
            detail = "can only be set when type is Localhost"
            is_seccomp = field == "seccompProfile"
            place = f"{here}.localhostProfile"
            yield invalid(place, name, detail) if is_seccomp else forbidden(place, detail)
        if not type_:
            yield required(f"{here}.type", "type is required when the profile is set")
        elif type_ not in _PROFILES:
            yield unsupported(f"{here}.type", type_, _PROFILES)
