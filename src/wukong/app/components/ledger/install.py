"""The component ledger in a cluster, with a volume for its file. Used by `wukong manifests ledger`.

One pod has the file, and the next one begins only when it is gone: the volume can be mounted on one node alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.api.quantity import parse_quantity
from wukong.app.install.controller import ControllerInstallation, build_manifests, check_installation
from wukong.app.install.installation import build_meta
from wukong.errors import InputError
from wukong.ports import Document

DIRECTORY = "/var/lib/wukong"
FILE = f"{DIRECTORY}/ledger.db"
VOLUME = "ledger"


class LedgerInstallation(ControllerInstallation, frozen=True, kw_only=True):
    storage: str = "1Gi"
    storage_class: str = ""  # the cluster's default


def make_installation(**given: Any) -> LedgerInstallation:
    return LedgerInstallation(component="ledger", kinds=(), **given)


def check_ledger_installation(installation: LedgerInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = list(_find_problems(installation))
    try:
        check_installation(installation)
    except InputError as error:
        problems = [*error.problems, *problems]
    if problems:
        raise InputError(*problems)


def _find_problems(installation: LedgerInstallation) -> Iterator[str]:
    if installation.replicas != 1:
        yield f"--replicas: expected 1, got {installation.replicas}: its file is on a volume that one pod mounts."
    try:
        amount = parse_quantity(installation.storage)
    except InputError as error:
        yield from error.at("--storage").problems
    else:
        if amount <= 0:
            yield f'--storage: expected an amount such as "1Gi", got {installation.storage!r}.'


def build_ledger_manifests(installation: LedgerInstallation) -> list[Document]:
    """Everything that is to be applied; the claim of the volume comes before who mounts it. No budget: a drain that
    waits for the only pod would wait for ever, and what it misses it records afterwards."""
    documents = []
    for document in build_manifests(installation):
        if document["kind"] == "Deployment":
            documents += [build_claim(installation), _with_volume(installation, document)]
        elif document["kind"] != "PodDisruptionBudget":
            documents.append(document)
    return documents


def build_claim(installation: LedgerInstallation) -> Document:
    storage_class = {"storageClassName": installation.storage_class} if installation.storage_class else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": build_meta(installation, installation.name, installation.component),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            **storage_class,
            "resources": {"requests": {"storage": installation.storage}},
        },
    }


def _with_volume(installation: LedgerInstallation, deployment: Document) -> Document:
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    container = {
        **container,
        "args": [*container["args"], f"--ledger={FILE}"],
        "volumeMounts": [{"name": VOLUME, "mountPath": DIRECTORY}],
    }
    volume = {"name": VOLUME, "persistentVolumeClaim": {"claimName": installation.name}}
    template = {**spec["template"], "spec": {**pod, "containers": [container], "volumes": [volume]}}
    return {**deployment, "spec": {**spec, "strategy": {"type": "Recreate"}, "template": template}}
