"""The webhooks in a cluster, as plain documents: account and rights, Deployment, budget, Service, configurations.

Called by `wukong manifests admission` for the documents in the order in which they are to be applied: the webhook
configurations come last, when there is somebody to answer.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence

from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, ROLLOUTS, WUKONGS
from wukong.api.resources import Key, Resource
from wukong.app.component import list_permissions
from wukong.app.components.admission.options import SERVICE, AdmissionOptions, configuration_of
from wukong.app.install import rbac, workload
from wukong.app.install.installation import (
    Installation,
    build_meta,
    find_memory_problems,
    find_namespace_problems,
    labels_of,
)
from wukong.app.permissions import LEASE_NAME
from wukong.controllers.admission.controller import LEADER_LABEL, LEADS
from wukong.errors import InputError
from wukong.ports import Document

NAME = "admission"  # the component's own
LEASE = f"{LEASE_NAME}-admission"  # not the extender's: both may run in one namespace
PORT, WEBHOOK_PORT, PROBES_PORT = 443, 9443, 8080
TIMEOUT_SECONDS = 2  # of the API server; we answer within 1.5
KEYS = "/etc/wukong/admission"  # where a Secret of somebody else's is mounted
GROUP = "admissionregistration.k8s.io/v1"
OWN_KINDS = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, ROLLOUTS, WUKONGS)


class AdmissionInstallation(Installation, frozen=True, kw_only=True):
    certificate_secret: str = ""  # somebody else's, with tls.crt and tls.key; "": we make our own
    ca_bundle: bytes = b""  # PEM: who signs that one; b"": somebody else writes it into the configurations
    api_server_cidrs: Sequence[str] = ()  # from where the webhooks may be called; (): from anywhere

    @property
    def service(self) -> Key:
        return Key(self.namespace, SERVICE)

    @property
    def options(self) -> AdmissionOptions:
        certificate, key = (f"{KEYS}/tls.crt", f"{KEYS}/tls.key") if self.certificate_secret else ("", "")
        return AdmissionOptions(service=str(self.service), cert=certificate, key=key)


def check_installation(installation: AdmissionInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*find_namespace_problems(installation), *find_memory_problems(installation)]
    names = [component.name for component in installation.components]
    if NAME not in names:
        problems.append(f"--components: expected {NAME} among them, got {','.join(names)}. Add it.")
    if installation.ca_bundle and not installation.certificate_secret:
        problems.append(
            "--ca-file: is about --certificate-secret, and there is none. Leave it out, or name the Secret."
        )
    for cidr in installation.api_server_cidrs:
        try:
            ipaddress.ip_network(cidr)
        except ValueError:
            problems.append(f"--api-server-cidrs: expected networks such as 10.0.0.0/24, got {cidr!r}.")
    if problems:
        raise InputError(*problems)


def build_manifests(installation: AdmissionInstallation, certificates: None = None) -> list[Document]:
    """Everything that is to be applied. Certificates are made when it runs."""
    permissions = list_permissions(installation.components, {NAME: installation.options}, LEASE)
    return [
        workload.build_namespace(installation),
        workload.build_critical_pods_quota(installation),
        rbac.build_account(installation, SERVICE, NAME),
        *rbac.build_roles(installation, SERVICE, NAME, permissions),
        workload.build_deployment(installation, SERVICE, NAME, build_pod(installation), {}),
        workload.build_budget(installation, SERVICE, NAME),
        build_service(installation),
        build_network_policy(installation),
        build_mutating_configuration(installation),
        build_validating_configuration(installation),
    ]


def build_service(installation: AdmissionInstallation) -> Document:
    """It selects the pod that leads, and no other: one instance knows of all decisions."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": build_meta(installation, SERVICE, NAME),
        "spec": {
            "selector": {**labels_of(NAME), LEADER_LABEL: LEADS},
            "ports": [{"name": "webhooks", "port": PORT, "targetPort": "webhooks", "protocol": "TCP"}],
        },
    }


def build_network_policy(installation: AdmissionInstallation) -> Document:
    """Nothing but the two ports can be reached.

    An API server is nobody whom a NetworkPolicy could name but by its address, which is different in every cluster.
    What is answered is no secret: what policies add to a pod that somebody shows us.
    """
    called: Document = {"ports": [workload.build_port(WEBHOOK_PORT)]}
    if installation.api_server_cidrs:
        called = {"from": [{"ipBlock": {"cidr": cidr}} for cidr in installation.api_server_cidrs], **called}
    probed = {"ports": [workload.build_port(PROBES_PORT)]}  # the kubelet and Prometheus, wherever they are
    return workload.build_network_policy(installation, SERVICE, NAME, [called, probed])


def build_mutating_configuration(installation: AdmissionInstallation) -> Document:
    """Pods at creation. A decision is noted, but never on a dry run."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    webhook = {
        **_build_webhook(installation, "pods", "/mutate", [{**rule, "scope": "Namespaced"}]),
        "sideEffects": "NoneOnDryRun",
        "reinvocationPolicy": "IfNeeded",
    }
    return _build_configuration(installation, "MutatingWebhookConfiguration", [webhook])


def build_validating_configuration(installation: AdmissionInstallation) -> Document:
    """Our own kinds: what their condition would say is said at once."""
    rules = [_build_own_rule(resource) for resource in OWN_KINDS]
    webhook = {**_build_webhook(installation, "kinds", "/validate", rules), "sideEffects": "None"}
    return _build_configuration(installation, "ValidatingWebhookConfiguration", [webhook])


def _build_own_rule(resource: Resource) -> Document:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def _build_configuration(installation: AdmissionInstallation, kind: str, webhooks: list[Document]) -> Document:
    name = configuration_of(installation.service)
    about = build_meta(installation, name, NAME, is_namespaced=False)
    return {"apiVersion": GROUP, "kind": kind, "metadata": about, "webhooks": webhooks}


def _build_webhook(installation: AdmissionInstallation, name: str, path: str, rules: list[Document]) -> Document:
    """It is ignored when it fails, and never asked about the cluster's own pods or ours."""
    service = {"namespace": installation.namespace, "name": SERVICE, "path": path, "port": PORT}
    known = {"caBundle": base64.b64encode(installation.ca_bundle).decode()} if installation.ca_bundle else {}
    spared = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", installation.namespace],
    }
    return {
        "name": f"{name}.placement.novasphere.dev",
        "clientConfig": {"service": service, **known},
        "rules": rules,
        "namespaceSelector": {"matchExpressions": [spared]},
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def build_pod(installation: AdmissionInstallation) -> Document:
    ports = [("webhooks", WEBHOOK_PORT), ("probes", PROBES_PORT)]
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
    if not installation.certificate_secret:
        return {"containers": [container]}
    # A whole folder, no subPath: the kubelet renews its files, and the server reads them again without a restart.
    container["volumeMounts"] = [{"name": "keys", "mountPath": KEYS, "readOnly": True}]
    return {
        "containers": [container],
        "volumes": [workload.build_secret_volume("keys", installation.certificate_secret)],
    }


def build_arguments(installation: AdmissionInstallation) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names, options = ",".join(component.name for component in installation.components), installation.options
    words = ["run", f"--components={names}", f"--admission=:{WEBHOOK_PORT}", f"--admission-service={options.service}"]
    words += [f"--admission-cert={options.cert}", f"--admission-key={options.key}"] if options.cert else []
    return [*words, f"--probes=:{PROBES_PORT}", f"--lease={installation.namespace}/{LEASE}", "--log-format=json"]
