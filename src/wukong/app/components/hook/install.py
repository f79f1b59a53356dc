"""The hook in a cluster: a Service, two Secrets that are mounted, and a port. For `wukong manifests spot`.

The Secrets are yours: one with the key `token`, one of type kubernetes.io/tls, as cert-manager keeps them.
"""

from __future__ import annotations

import msgspec

from wukong.app.components.hook.component import HOOK
from wukong.app.components.hook.options import HookOptions
from wukong.app.install import workload
from wukong.app.install.controller import ControllerInstallation
from wukong.app.install.installation import build_meta, labels_of
from wukong.app.options import options_of
from wukong.errors import InputError
from wukong.ports import Document

PORT, CONTAINER_PORT = 443, 8444
TOKEN, CERTIFICATE = "/etc/wukong/hook-token", "/etc/wukong/hook-certificate"
OPTIONS = HookOptions(
    address=f":{CONTAINER_PORT}",
    token_file=f"{TOKEN}/token",
    cert=f"{CERTIFICATE}/tls.crt",
    key=f"{CERTIFICATE}/tls.key",
)


class HookSecrets(msgspec.Struct, frozen=True):
    """Names of Secrets in the installation's namespace."""

    token: str
    certificate: str


def read_secrets(token: str, certificate: str) -> HookSecrets | None:
    """None where neither is named: then there is no hook. Raises InputError for one without the other."""
    if bool(token) != bool(certificate):
        missing, given = ("--hook-certificate", "--hook-token") if token else ("--hook-token", "--hook-certificate")
        raise InputError(f"{missing}: the hook needs a token and a certificate, got only {given}. Name both Secrets.")
    return HookSecrets(token, certificate) if token else None


def with_hook(installation: ControllerInstallation) -> ControllerInstallation:
    """The same, told to listen, and granted what that needs."""
    words = [f"{option.flag}={getattr(OPTIONS, option.field)}" for option in options_of(HookOptions)]
    words = [word for word in words if not word.endswith(("=False", "="))]
    return msgspec.structs.replace(
        installation,
        options=(*installation.options, *words),
        component_options={**installation.component_options, HOOK.name: OPTIONS},
    )


def add_hook(documents: list[Document], installation: ControllerInstallation, secrets: HookSecrets) -> list[Document]:
    """The documents of an installation `with_hook`, and what makes the hook reachable."""
    for document in documents:
        if document["kind"] == "Deployment":
            _mount_secrets(document["spec"]["template"]["spec"], secrets)
        elif document["kind"] == "NetworkPolicy":
            document["spec"]["ingress"].append({"ports": [workload.build_port(CONTAINER_PORT)]})
    return [*documents, build_service(installation)]


def _mount_secrets(pod: Document, secrets: HookSecrets) -> None:
    """As whole folders, no subPath: the kubelet renews their files, and they are read again without a restart."""
    (container,) = pod["containers"]
    container["ports"].append({"name": "hook", "containerPort": CONTAINER_PORT, "protocol": "TCP"})
    for name, path, secret in (
        ("hook-token", TOKEN, secrets.token),
        ("hook-certificate", CERTIFICATE, secrets.certificate),
    ):
        mount = {"name": name, "mountPath": path, "readOnly": True}
        container.setdefault("volumeMounts", []).append(mount)
        pod.setdefault("volumes", []).append(workload.build_secret_volume(name, secret))


def build_service(installation: ControllerInstallation) -> Document:
    """Every replica takes notices, whoever leads."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": build_meta(installation, f"{installation.name}-hook", installation.component),
        "spec": {
            "selector": labels_of(installation.component),
            "ports": [{"name": "hook", "port": PORT, "targetPort": "hook", "protocol": "TCP"}],
        },
    }
