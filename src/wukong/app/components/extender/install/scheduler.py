"""What makes a kube-scheduler ask the extender: its configuration, and where need be a second scheduler that has it.

A control plane of one's own gets the configuration as a file for its scheduler. Managed control planes (EKS, GKE, AKS)
take none: there a stock kube-scheduler runs beside theirs, under a schedulerName and a lease of its own.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from wukong.app.components.extender.install.extender import build_secret
from wukong.app.components.extender.install.settings import (
    CLIENT_SECRET,
    SCHEDULER_COMPONENT,
    SECOND_SCHEDULER,
    ExtenderInstallation,
    SecondScheduler,
)
from wukong.app.install import rbac, workload
from wukong.app.install.installation import build_meta
from wukong.app.install.text import as_yaml
from wukong.ports import Document

if TYPE_CHECKING:
    from wukong.app.install.certificates import Certificates  # brings cryptography

COMPONENT = SCHEDULER_COMPONENT
CONFIG_FILE = "scheduler-config.yaml"
CONFIG_NAME = "wukong-scheduler-config"
FOLDER = "/etc/wukong/scheduler"
KEYS = "/etc/wukong/client"
PORT = 10259
HTTP_TIMEOUT = "3s"  # the default, 5 s, is long for a pod to wait for an opinion that may be ignored

WHY = """\
# Made by `wukong manifests extender`. What is not said here stays as kube-scheduler has it.
#
# percentageOfNodesToScore: 100   In larger clusters kube-scheduler shows an extender only a sample of the nodes: "no
#                                 spot node is left" would then be said of the sample.
# ignorable: true                 While the extender is away pods are placed without it, its own among them.
# nodeCacheCapable: true          The extender watches nodes itself and is sent their names only.
"""


def build_configuration(installation: ExtenderInstallation, certificates: Certificates | None) -> Document:
    """The KubeSchedulerConfiguration of the cluster's own scheduler: one file, keys and all, to put on its host."""
    # A scheduler that is given --config ignores --kubeconfig: who it is must be said here.
    connection = {"clientConnection": {"kubeconfig": installation.scheduler_kubeconfig}}
    return {**_build_head(), **connection, **_build_extenders(installation, build_inline_keys(certificates))}


def build_second_configuration(
    installation: ExtenderInstallation, second: SecondScheduler, certificates: Certificates | None
) -> Document:
    """The same for a scheduler in a pod, whose keys are files of a Secret. Its lease is not that of the other."""
    lease = {
        "leaderElect": True,
        "resourceLock": "leases",
        "resourceNamespace": installation.namespace,
        "resourceName": SECOND_SCHEDULER,
    }
    profiles = [{"schedulerName": second.name}]
    return {
        **_build_head(),
        "leaderElection": lease,
        "profiles": profiles,
        **_build_extenders(installation, name_key_files(certificates)),
    }


def _build_head() -> Document:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def _build_extenders(installation: ExtenderInstallation, tls: Document) -> Document:
    extender = {
        "urlPrefix": installation.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": installation.weight,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": HTTP_TIMEOUT,
        "enableHTTPS": not installation.is_plain,
        **({"tlsConfig": tls} if tls else {}),  # HTTPS without an authority would verify nothing: there always is one
    }
    return {"percentageOfNodesToScore": 100, "extenders": [extender]}


def build_inline_keys(certificates: Certificates | None) -> Document:
    if certificates is None:
        return {}
    client = certificates.client
    parts = {"caData": certificates.authority, "certData": client.certificate, "keyData": client.key}
    return {name: base64.b64encode(content).decode() for name, content in parts.items()}


def name_key_files(certificates: Certificates | None) -> Document:
    if certificates is None:
        return {}
    return {"caFile": f"{KEYS}/ca.crt", "certFile": f"{KEYS}/tls.crt", "keyFile": f"{KEYS}/tls.key"}


def format_configuration(document: Document) -> str:
    return WHY + as_yaml([document])


def store_configuration(installation: ExtenderInstallation, certificates: Certificates | None) -> Document:
    """The configuration as an object, to be fetched from the cluster. With keys inside it is a Secret."""
    text = format_configuration(build_configuration(installation, certificates))
    if certificates is not None:
        return build_secret(installation, CONFIG_NAME, {CONFIG_FILE: text.encode()})
    return _build_config_map(installation, text)


def build_documents(
    installation: ExtenderInstallation, second: SecondScheduler, certificates: Certificates | None
) -> list[Document]:
    """The second scheduler, in the namespace of the extender."""
    text = format_configuration(build_second_configuration(installation, second, certificates))
    # It reads its configuration and the authority once: whoever applies new ones restarts it.
    seen = text.encode() + (certificates.authority + certificates.client.certificate if certificates else b"")
    notes = {"wukong.novasphere.dev/checksum": hashlib.sha256(seen).hexdigest()}
    return [
        rbac.build_account(installation, SECOND_SCHEDULER, COMPONENT),
        *build_rights(installation),
        _build_config_map(installation, text),
        workload.build_deployment(
            installation, SECOND_SCHEDULER, COMPONENT, build_pod(second, has_keys=certificates is not None), notes
        ),
        workload.build_budget(installation, SECOND_SCHEDULER, COMPONENT),
        workload.build_network_policy(
            installation, SECOND_SCHEDULER, COMPONENT, [{"ports": [workload.build_port(PORT)]}]
        ),
    ]


def _build_config_map(installation: ExtenderInstallation, text: str) -> Document:
    about = build_meta(installation, CONFIG_NAME, COMPONENT)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {CONFIG_FILE: text}}


def build_rights(installation: ExtenderInstallation) -> list[Document]:
    """What Kubernetes grants its own scheduler, and the lease: the built-in role knows only one of another name."""
    wide, lease = (
        f"{installation.namespace}:{SECOND_SCHEDULER}",
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
    )
    documents = [
        rbac.bind_cluster_role(
            installation, f"{wide}:{role}", COMPONENT, role=f"system:{role}", account=SECOND_SCHEDULER
        )
        for role in ("kube-scheduler", "volume-scheduler")
    ]
    reader = "extension-apiserver-authentication-reader"
    who = {"kind": "Role", "role": reader, "account": SECOND_SCHEDULER, "namespace": "kube-system"}
    documents += [rbac.bind_role(installation, wide, COMPONENT, **who)]
    leading = [
        {**lease, "verbs": ["create"]},  # cannot be granted by name
        {**lease, "verbs": ["get", "update"], "resourceNames": [SECOND_SCHEDULER]},
    ]
    documents += [rbac.build_role(installation, SECOND_SCHEDULER, COMPONENT, leading)]
    own = {"kind": "Role", "role": SECOND_SCHEDULER, "account": SECOND_SCHEDULER}
    return [*documents, rbac.bind_role(installation, SECOND_SCHEDULER, COMPONENT, **own)]


def build_pod(second: SecondScheduler, *, has_keys: bool) -> Document:
    mounts = [{"name": "config", "mountPath": FOLDER, "readOnly": True}]
    volumes: list[Document] = [{"name": "config", "configMap": {"name": CONFIG_NAME}}]
    if has_keys:
        mounts += [{"name": "keys", "mountPath": KEYS, "readOnly": True}]
        volumes += [workload.build_secret_volume("keys", CLIENT_SECRET)]
    container = {
        "name": "kube-scheduler",
        "image": second.image,
        "command": ["kube-scheduler", f"--config={FOLDER}/{CONFIG_FILE}", f"--secure-port={PORT}"],
        "ports": [{"name": "https", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": workload.build_probe("/livez", "https", "HTTPS", periodSeconds=10, timeoutSeconds=5),
        "readinessProbe": workload.build_probe("/readyz", "https", "HTTPS", periodSeconds=5, timeoutSeconds=5),
        "resources": workload.build_resources("100m", "128Mi", "1Gi"),
        "securityContext": workload.build_container_security(),
        "volumeMounts": mounts,
    }
    return {"containers": [container], "volumes": volumes}
