"""A component that has only controllers, in a cluster, as plain documents: kinds, rights, Deployment, budget.

Called by `wukong manifests vm` and `spot` for the documents in the order in which they are to be applied. Such a
component serves nothing but probes, so there are no certificates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from wukong.api.crds import build_crds
from wukong.app.component import list_permissions
from wukong.app.install import rbac, workload
from wukong.app.install.installation import Installation, find_memory_problems, find_namespace_problems
from wukong.app.permissions import LEASE_NAME
from wukong.errors import InputError
from wukong.ports import Document

PROBES_PORT = 8080


class ControllerInstallation(Installation, frozen=True, kw_only=True):
    component: str  # the one that this is about; others may run beside it
    kinds: Sequence[str]  # of ours that it needs, as CustomResourceDefinitions are named
    options: Sequence[str] = ()  # of `wukong run`, one word each, such as --max-priority=1000
    component_options: Mapping[str, msgspec.Struct] = {}  # where rights depend on them; by the component's name

    @property
    def name(self) -> str:
        """Of Deployment, account, budget, roles and lease: both may run in one namespace with the extender."""
        return f"{LEASE_NAME}-{self.component}"


def check_installation(installation: ControllerInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*find_namespace_problems(installation), *find_memory_problems(installation)]
    names = [component.name for component in installation.components]
    if installation.component not in names:
        problems.append(f"--components: expected {installation.component} among them, got {','.join(names)}. Add it.")
    if problems:
        raise InputError(*problems)


def build_manifests(installation: ControllerInstallation, certificates: None = None) -> list[Document]:
    """Everything that is to be applied."""
    name, component = installation.name, installation.component
    permissions = list_permissions(installation.components, installation.component_options, name)
    probed = {"ports": [workload.build_port(PROBES_PORT)]}  # the kubelet and Prometheus, wherever they are
    return [
        *(crd for crd in build_crds() if crd["metadata"]["name"] in installation.kinds),
        workload.build_namespace(installation),
        workload.build_critical_pods_quota(installation),
        rbac.build_account(installation, name, component),
        *rbac.build_roles(installation, name, component, permissions),
        workload.build_deployment(installation, name, component, build_pod(installation), {}),
        workload.build_budget(installation, name, component),
        workload.build_network_policy(installation, name, component, [probed]),
    ]


def build_pod(installation: ControllerInstallation) -> Document:
    container = workload.build_controller_container(
        installation, build_arguments(installation), PROBES_PORT, cpu="100m"
    )
    return {"containers": [container]}


def build_arguments(installation: ControllerInstallation) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names = ",".join(component.name for component in installation.components)
    words = ["run", f"--components={names}", f"--probes=:{PROBES_PORT}"]
    return [*words, f"--lease={installation.namespace}/{installation.name}", "--log-format=json", *installation.options]
