"""Pod Security Standards: whether a namespace's labels refuse a pod, in the words of the admission plugin PodSecurity.

    pod-security.kubernetes.io/enforce: privileged │ baseline │ restricted       …/enforce-version: latest │ v1.30

What each level forbids is in pod_security_checks.py. The levels of warn and audit refuse nothing. Nobody is exempt, as
by default. Called by writes.py; pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.limits.pod_security_checks import BASELINE, RESTRICTED, CheckedPod, Violation
from wukong.ports import Document

PREFIX = "pod-security.kubernetes.io"
ENFORCE = f"{PREFIX}/enforce"
LEVELS = ("privileged", "baseline", "restricted")
LATEST = 35  # the minor whose checks `latest` means
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")


class Standard(NamedTuple):
    """What a namespace enforces. What cannot be read counts as the strictest, or the latest."""

    level: str = "privileged"
    version: str = "latest"

    @property
    def minor(self) -> int:
        match = _VERSION.fullmatch(self.version)
        return min(int(match[1]), LATEST) if match else LATEST


def standard_of(namespace: Document | None) -> Standard:
    labels = meta_of(namespace or {}).get("labels") or {}
    if ENFORCE not in labels:
        return Standard()
    level, version = labels[ENFORCE], labels.get(f"{ENFORCE}-version", "latest")
    return Standard(level if level in LEVELS else "restricted", version if _VERSION.fullmatch(version) else "latest")


def find_refusal(standard: Standard, pod: Document) -> str:
    """Why a pod is refused, or ""."""
    violations = list(_list_violations(standard, CheckedPod(pod, standard.minor)))
    if not violations:
        return ""
    details = [f"{reason} ({detail})" for reason, detail in violations]
    return f'violates PodSecurity "{standard.level}:{standard.version}": {", ".join(details)}'


def _list_violations(standard: Standard, pod: CheckedPod) -> Iterator[Violation]:
    """Baseline's first; what restricted checks more strictly is not said twice."""
    if standard.level == "privileged":
        return
    is_restricted = standard.level == "restricted"
    restricted = [check for check in RESTRICTED if is_restricted and pod.minor >= check.since]
    replaced = {check.replaces for check in restricted}
    for check in (*BASELINE, *restricted):
        if pod.minor >= check.since and check.name not in replaced:
            violation = check.find(pod)
            if violation is not None:
                yield violation


def find_label_problems(namespace: Document) -> Iterator[str]:
    """What is wrong with the labels of a new namespace."""
    labels = meta_of(namespace).get("labels") or {}
    for mode in ("enforce", "audit", "warn"):
        for name, is_valid, expected in (
            (f"{PREFIX}/{mode}", LEVELS.__contains__, f"must be one of {', '.join(LEVELS)}"),
            (f"{PREFIX}/{mode}-version", _is_version, 'must be "latest" or "v1.x"'),
        ):
            if name in labels and not is_valid(labels[name]):
                yield f'metadata.labels[{name}]: Invalid value: "{labels[name]}": {expected}'


def _is_version(text: str) -> bool:
    return text == "latest" or _VERSION.fullmatch(text) is not None
