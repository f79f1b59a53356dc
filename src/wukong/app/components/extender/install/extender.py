"""The extender itself: namespace, account and rights, keys, Deployment, budget, Service.

Called by `wukong manifests extender` for the documents in the order in which they are to be applied.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wukong.app.component import list_permissions
from wukong.app.components.extender.install.settings import (
    CLIENT_SECRET,
    CONTAINER_PORT,
    EXTENDER,
    LEASE,
    PROBES_PORT,
    SCHEDULER_COMPONENT,
    SERVER_SECRET,
    ExtenderInstallation,
)
from wukong.app.components.usage import USAGE, UsageOptions
from wukong.app.components.wukongs import WukongOptions
from wukong.app.install import rbac, workload
from wukong.app.install.installation import build_meta, labels_of
from wukong.app.permissions import Permission
from wukong.ports import Document

if TYPE_CHECKING:
    from wukong.app.install.certificates import Certificates  # brings cryptography

COMPONENT = "extender"
KEYS = "/etc/wukong/extender"  # where the server's Secret is mounted


def build_documents(installation: ExtenderInstallation, certificates: Certificates | None) -> list[Document]:
    """`certificates` is None for plain HTTP."""
    assert (certificates is None) == installation.is_plain, "plain HTTP has no certificates, and TLS has"
    return [
        workload.build_namespace(installation),
        workload.build_critical_pods_quota(installation),
        rbac.build_account(installation, EXTENDER, COMPONENT),
        *rbac.build_roles(installation, EXTENDER, COMPONENT, list_needed_permissions(installation)),
        *(build_secrets(installation, certificates) if certificates else []),
        workload.build_deployment(installation, EXTENDER, COMPONENT, build_pod(installation), {}),
        workload.build_budget(installation, EXTENDER, COMPONENT),
        build_service(installation),
        build_network_policy(installation),
    ]


def list_needed_permissions(installation: ExtenderInstallation) -> list[Permission]:
    """What the components need; usage comes from the cluster where no Prometheus is named."""
    usage = UsageOptions(prometheus=installation.prometheus)
    return list_permissions(installation.components, {USAGE.name: usage}, LEASE)


def build_secrets(installation: ExtenderInstallation, certificates: Certificates) -> list[Document]:
    """The server's and the client's apart: who may read the one learns nothing of the other."""
    server, client = certificates.server, certificates.client
    return [
        build_secret(
            installation,
            SERVER_SECRET,
            {"tls.crt": server.certificate, "tls.key": server.key, "client-ca.crt": certificates.authority},
        ),
        build_secret(
            installation,
            CLIENT_SECRET,
            {"tls.crt": client.certificate, "tls.key": client.key, "ca.crt": certificates.authority},
        ),
    ]


def build_secret(installation: ExtenderInstallation, name: str, files: Mapping[str, bytes]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": build_meta(installation, name, COMPONENT),
        "type": "Opaque",
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }


def build_service(installation: ExtenderInstallation) -> Document:
    fixed = {"clusterIP": installation.cluster_ip} if installation.cluster_ip else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": build_meta(installation, EXTENDER, COMPONENT),
        "spec": {
            **fixed,
            "selector": labels_of(COMPONENT),
            # A scheduler stays with one replica, which knows what it said a moment ago, until that one is gone.
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "extender", "port": installation.port, "targetPort": "extender", "protocol": "TCP"}],
        },
    }


def build_network_policy(installation: ExtenderInstallation) -> Document:
    """Nothing but the two ports can be reached. Where our own scheduler asks, nobody else reaches the extender's.

    A scheduler on the host's network is nobody whom a NetworkPolicy could name: there, mutual TLS tells who asks. What
    the pods call is not restricted: the address and port of an API server are different in every cluster.
    """
    scheduler = [{"podSelector": {"matchLabels": labels_of(SCHEDULER_COMPONENT)}}]
    asked = {"ports": [workload.build_port(CONTAINER_PORT[installation.is_plain])]}
    probed = {"ports": [workload.build_port(PROBES_PORT)]}  # the kubelet and Prometheus, wherever they are
    return workload.build_network_policy(
        installation, EXTENDER, COMPONENT, [{"from": scheduler, **asked} if installation.second else asked, probed]
    )


def build_pod(installation: ExtenderInstallation) -> Document:
    ports = [("extender", CONTAINER_PORT[installation.is_plain]), ("probes", PROBES_PORT)]
    container = {
        "name": "wukong",
        "image": installation.image,
        "args": build_arguments(installation),
        "env": workload.build_pod_variables(),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "livenessProbe": workload.build_probe(
            "/healthz", "probes", periodSeconds=10, timeoutSeconds=3, failureThreshold=3
        ),
        "readinessProbe": workload.build_probe("/readyz", "probes", periodSeconds=5, timeoutSeconds=3),
        "resources": workload.build_resources("100m", installation.memory, installation.memory_limit),
        "securityContext": workload.build_container_security(),
    }
    if installation.is_plain:
        return {"containers": [container]}
    # A whole folder, no subPath: the kubelet renews its files, and the server reads them again without a restart.
    container["volumeMounts"] = [{"name": "keys", "mountPath": KEYS, "readOnly": True}]
    return {"containers": [container], "volumes": [workload.build_secret_volume("keys", SERVER_SECRET)]}


def build_arguments(installation: ExtenderInstallation) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names = ",".join(component.name for component in installation.components)
    words = ["run", f"--components={names}", f"--extender=:{CONTAINER_PORT[installation.is_plain]}"]
    if installation.is_plain:
        words += ["--extender-plain-http"]
    else:
        words += [f"--extender-cert={KEYS}/tls.crt", f"--extender-key={KEYS}/tls.key"]
        words += [f"--extender-client-ca={KEYS}/client-ca.crt"]
    words += [f"--probes=:{PROBES_PORT}", f"--lease={installation.namespace}/{LEASE}", "--log-format=json"]
    words += [f"--prometheus={installation.prometheus}"] if installation.prometheus else []
    words += [] if installation.critical_priority is None else [f"--critical-priority={installation.critical_priority}"]
    mode = installation.resource_affinity
    return words + ([] if mode == WukongOptions().resource_affinity else [f"--resource-affinity={mode}"])
