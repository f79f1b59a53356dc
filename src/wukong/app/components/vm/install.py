"""The component vm in a cluster, as plain documents: kind, namespace, account and rights, Deployment, budget.

Called by `wukong manifests vm` for the documents in the order in which they are to be applied.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.crds import build_crds
from wukong.api.vm import VM_GROUP
from wukong.app.component import list_permissions
from wukong.app.install import rbac, workload
from wukong.app.install.installation import Installation, find_memory_problems, find_namespace_problems
from wukong.app.permissions import LEASE_NAME
from wukong.errors import InputError
from wukong.ports import Document

NAME = "vm"  # the component's own
CONTROLLER = "wukong-vm"  # Deployment, account, budget, roles; of the lease, too
LEASE = f"{LEASE_NAME}-vm"  # not the extender's: both may run in one namespace
PROBES_PORT = 8080


class VmInstallation(Installation, frozen=True, kw_only=True):
    options: Sequence[str] = ()  # of `wukong run`, one word each, such as --max-priority=1000


def check_installation(installation: VmInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*find_namespace_problems(installation), *find_memory_problems(installation)]
    names = [component.name for component in installation.components]
    if NAME not in names:
        problems.append(f"--components: expected {NAME} among them, got {','.join(names)}. Add it.")
    if problems:
        raise InputError(*problems)


def build_manifests(installation: VmInstallation, certificates: None = None) -> list[Document]:
    """Everything that is to be applied. It serves nothing but probes, so there are no certificates."""
    permissions = list_permissions(installation.components, {}, LEASE)
    probed = {"ports": [workload.build_port(PROBES_PORT)]}  # the kubelet and Prometheus, wherever they are
    return [
        *(crd for crd in build_crds() if crd["spec"]["group"] == VM_GROUP),
        workload.build_namespace(installation),
        workload.build_critical_pods_quota(installation),
        rbac.build_account(installation, CONTROLLER, NAME),
        *rbac.build_roles(installation, CONTROLLER, NAME, permissions),
        workload.build_deployment(installation, CONTROLLER, NAME, build_pod(installation), {}),
        workload.build_budget(installation, CONTROLLER, NAME),
        workload.build_network_policy(installation, CONTROLLER, NAME, [probed]),
    ]


def build_pod(installation: VmInstallation) -> Document:
    container = {
        "name": "wukong",
        "image": installation.image,
        "args": build_arguments(installation),
        "env": workload.build_pod_variables(),
        "ports": [{"name": "probes", "containerPort": PROBES_PORT, "protocol": "TCP"}],
        "livenessProbe": workload.build_probe(
            "/healthz", "probes", periodSeconds=10, timeoutSeconds=3, failureThreshold=3
        ),
        "readinessProbe": workload.build_probe("/readyz", "probes", periodSeconds=5, timeoutSeconds=3),
        "resources": workload.build_resources("100m", installation.memory, installation.memory_limit),
        "securityContext": workload.build_container_security(),
    }
    return {"containers": [container]}


def build_arguments(installation: VmInstallation) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names = ",".join(component.name for component in installation.components)
    words = ["run", f"--components={names}", f"--probes=:{PROBES_PORT}"]
    return [*words, f"--lease={installation.namespace}/{LEASE}", "--log-format=json", *installation.options]
