"""The extender itself: namespace, account and rights, keys, Deployment, budget, Service.

Called by `wukong manifests extender` for the documents in the order in which they are to be applied.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from wukong.app.components import METRICS_API, Rule
from wukong.app.install import rbac, workload
from wukong.app.install.certificates import Certificates
from wukong.app.install.settings import (
    CLIENT_SECRET,
    CONTAINER_PORT,
    EXTENDER,
    LEASE,
    PROBES_PORT,
    SERVER_SECRET,
    Settings,
    labels,
    meta,
)
from wukong.ports import Document

COMPONENT = "extender"
KEYS = "/etc/wukong/extender"  # where the server's Secret is mounted


def documents(settings: Settings, certificates: Certificates | None) -> list[Document]:
    """`certificates` is None for plain HTTP."""
    assert (certificates is None) == settings.is_plain, "plain HTTP has no certificates, and TLS has"
    return [
        namespace(settings),
        workload.critical_pods_quota(settings),
        rbac.account(settings, EXTENDER, COMPONENT),
        *rbac.rights(settings, EXTENDER, COMPONENT, rules(settings)),
        *(secrets(settings, certificates) if certificates else []),
        workload.deployment(settings, EXTENDER, COMPONENT, pod(settings), {}),
        workload.budget(settings, EXTENDER, COMPONENT),
        service(settings),
    ]


def rules(settings: Settings) -> list[Rule]:
    """What the components ask for; and usage, which comes from the cluster where no Prometheus is named."""
    asked = [rule for component in settings.components for rule in component.rules]
    return asked if settings.prometheus else [*asked, METRICS_API]


def namespace(settings: Settings) -> Document:
    about = meta(settings, settings.namespace, "namespace", is_namespaced=False)
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**about, "labels": {**about["labels"], **level}}}


def secrets(settings: Settings, certificates: Certificates) -> list[Document]:
    """The server's and the client's apart: who may read the one learns nothing of the other."""
    server, client = certificates.server, certificates.client
    return [
        secret(
            settings,
            SERVER_SECRET,
            {"tls.crt": server.certificate, "tls.key": server.key, "client-ca.crt": certificates.authority},
        ),
        secret(
            settings,
            CLIENT_SECRET,
            {"tls.crt": client.certificate, "tls.key": client.key, "ca.crt": certificates.authority},
        ),
    ]


def secret(settings: Settings, name: str, files: Mapping[str, bytes]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta(settings, name, COMPONENT),
        "type": "Opaque",
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }


def service(settings: Settings) -> Document:
    fixed = {"clusterIP": settings.cluster_ip} if settings.cluster_ip else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(settings, EXTENDER, COMPONENT),
        "spec": {
            **fixed,
            "selector": labels(COMPONENT),
            # A scheduler stays with one replica, which knows what it said a moment ago, until that one is gone.
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "extender", "port": settings.port, "targetPort": "extender", "protocol": "TCP"}],
        },
    }


def pod(settings: Settings) -> Document:
    ports = [("extender", CONTAINER_PORT[settings.is_plain]), ("probes", PROBES_PORT)]
    container = {
        "name": "wukong",
        "image": settings.image,
        "args": arguments(settings),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "livenessProbe": workload.probe("/healthz", "probes", periodSeconds=10, timeoutSeconds=3, failureThreshold=3),
        "readinessProbe": workload.probe("/readyz", "probes", periodSeconds=5, timeoutSeconds=3),
        "resources": workload.resources("100m", "256Mi", "1Gi"),
        "securityContext": workload.container_security(),
    }
    if settings.is_plain:
        return {"containers": [container]}
    # A whole folder, no subPath: the kubelet renews its files, and the server reads them again without a restart.
    container["volumeMounts"] = [{"name": "keys", "mountPath": KEYS, "readOnly": True}]
    return {"containers": [container], "volumes": [workload.secret_volume("keys", SERVER_SECRET)]}


def arguments(settings: Settings) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names = ",".join(component.name for component in settings.components)
    words = ["run", f"--components={names}", f"--extender=0.0.0.0:{CONTAINER_PORT[settings.is_plain]}"]
    if settings.is_plain:
        words += ["--extender-plain-http"]
    else:
        words += [f"--extender-cert={KEYS}/tls.crt", f"--extender-key={KEYS}/tls.key"]
        words += [f"--extender-client-ca={KEYS}/client-ca.crt"]
    words += [f"--probes=0.0.0.0:{PROBES_PORT}", f"--lease={settings.namespace}/{LEASE}", "--log-format=json"]
    words += [f"--prometheus={settings.prometheus}"] if settings.prometheus else []
    words += [] if settings.critical_priority is None else [f"--critical-priority={settings.critical_priority}"]
    return words
