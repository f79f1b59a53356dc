"""Which programs the control plane is made of: ready-made ones, else our own build. control_plane.py runs them.
KubeVirt's is always our own.

`KUBEBUILDER_ASSETS` names a folder as envtest has it: etcd and kube-apiserver, and if they are there
kube-controller-manager and kube-scheduler. What it lacks comes from our build: the control plane is always whole.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from testbed import build
from testbed.errors import UnavailableError

READY_MADE = {
    "etcd": "etcd",
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}
COMPONENTS = tuple(READY_MADE)  # in the order in which they start
NEEDED = ("etcd", "apiserver")


class Programs(msgspec.Struct, frozen=True):
    """How each component is called; its flags follow."""

    argv: dict[str, list[str]]


def find(say: build.Say) -> Programs:
    """Every component's program. Raises UnavailableError, with what to do about it, where there is none."""
    ready = ready_made()
    missing = [name for name in COMPONENTS if name not in ready]
    if missing:
        try:
            program = str(build.built(say))
        except UnavailableError as reason:
            lacks = f"KUBEBUILDER_ASSETS lacks {', '.join(READY_MADE[name] for name in missing)}, and " if ready else ""
            raise UnavailableError(f"{lacks}{reason}") from None
        ready |= {name: [program, name] for name in missing}
    return Programs({name: ready[name] for name in COMPONENTS})


def find_kubevirt(say: build.Say) -> Path:
    """The program that is virt-api and virt-controller. Raises UnavailableError where there is none."""
    return build.built(say, build.kubevirt())


def find_kubectl(say: build.Say) -> Path:
    """kubectl, for the commands that documents show. Raises UnavailableError where there is none."""
    return build.built(say, build.kubectl())


def ready_made() -> dict[str, list[str]]:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return {}
    found = {name: [str(Path(folder, file))] for name, file in READY_MADE.items() if Path(folder, file).is_file()}
    if absent := [READY_MADE[name] for name in NEEDED if name not in found]:
        raise UnavailableError(
            f"KUBEBUILDER_ASSETS={folder} has no {' and no '.join(absent)}: unset it or complete the folder"
        )
    return found
