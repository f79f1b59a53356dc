"""Chooses the version and the profile of kube-scheduler to decide by. Notes what it had to guess.

Used by the verbs that decide. Reads the scheduler's configuration, nothing else.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable

from wukong.api.core import Node, Pod
from wukong.api.profile import Profile, default_profile
from wukong.api.scheduler_config import read_scheduler_config
from wukong.api.versions import VERSIONS, Version, find_version
from wukong.cli.views.console import note
from wukong.cluster import place_name, read_settings
from wukong.errors import InputError

_NO_EXTENDERS = (
    "$.extenders: scheduler extenders are not modelled here, only by `wukong explain`. "
    "Remove them to decide by the built-in plugins alone."
)
_VERSION = re.compile(r"v?(\d+\.\d+)")


def read_version(text: str, place: str) -> Version:
    """Return the version that the user or a recording names. For an unknown one, note and return the nearest."""
    match = _VERSION.match(text)
    if match is None:
        known = ", ".join(VERSIONS)
        raise InputError(f"{place}: expected a version of Kubernetes such as 1.35, got {text!r}. Known: {known}.")
    version, is_exact = find_version(text)
    if not is_exact:
        note(f"Kubernetes {match[1]} is not modelled; decided as in {version.minor}, the nearest that is.")
    return version


def guess_version(nodes: Iterable[Node]) -> Version:
    """Return the version most kubelets run. The control plane may be newer, so the guess is always noted."""
    minor = find_most_common_minor(node.status.node_info.kubelet_version for node in nodes)
    choose = "Choose with --kubernetes."
    if not minor:
        version, _ = find_version("")
        note(f"the nodes do not say which Kubernetes they run; decided as in {version.minor}. {choose}")
        return version
    version, is_exact = find_version(minor)
    nearest = "" if is_exact else f", which is not modelled; {version.minor} is the nearest that is"
    note(f"decided as in Kubernetes {version.minor}: the kubelets run {minor}{nearest}. {choose}")
    return version


def note_other_version(kubelets: Iterable[str]) -> None:
    """Where a change is played, controllers and scheduler are those of one version, whatever the cluster runs."""
    minor, played = find_most_common_minor(kubelets), find_version("")[0].minor
    if minor and minor != played:
        note(f"played as in Kubernetes {played}: the kubelets run {minor}.")


def find_most_common_minor(kubelets: Iterable[str]) -> str:
    """Return the minor, as 1.35, that most of these versions of kubelets have; "" if none can be read."""
    minors = Tally(match[1] for version in kubelets if (match := _VERSION.match(version)) is not None)
    return minors.most_common(1)[0][0] if minors else ""


def note_other_scheduler(pod: Pod) -> None:
    name = pod.spec.scheduler_name
    if name not in ("", "default-scheduler"):
        note(f"{pod.key} asks for the scheduler {name!r}; decided by the profile of kube-scheduler all the same.")


class Profiles:
    """The profile to decide by, for each version asked for."""

    def __init__(self, scheduler_config: str | None, *, takes_extenders: bool = False) -> None:
        self._takes_extenders = takes_extenders
        self._place = place_name(scheduler_config) if scheduler_config else ""
        self._config = read_settings(scheduler_config) if scheduler_config else None
        self._profiles: dict[str, Profile] = {}

    def of(self, version: Version) -> Profile:
        if version.minor not in self._profiles:
            self._profiles[version.minor] = self._read_profile(version)
        return self._profiles[version.minor]

    def _read_profile(self, version: Version) -> Profile:
        if self._config is None:
            return default_profile(version)
        try:
            profile = read_scheduler_config(self._config, version)
            if profile.extenders and not self._takes_extenders:
                raise InputError(_NO_EXTENDERS)
            return profile
        except InputError as error:
            raise error.at(self._place) from None
