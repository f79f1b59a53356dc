"""The component scheduler in a cluster, as plain documents: kinds, namespace, account and rights, Deployment, budget.

Called by `wukong manifests scheduler` for the documents in the order in which they are to be applied. Its own pods are
placed by the cluster's default scheduler: it never waits for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.crds import build_crds
from wukong.app.component import list_permissions
from wukong.app.components.scheduler.options import (
    LEASE,
    SchedulerOptions,
    find_problems,
    name_lease,
    read_profiles,
)
from wukong.app.install import rbac, workload
from wukong.app.install.installation import Installation, build_meta, find_memory_problems, find_namespace_problems
from wukong.cluster import read_settings
from wukong.errors import InputError
from wukong.ports import Document

NAME = "scheduler"  # the component's own
POLICIES = ("PlacementPolicy", "ClusterPlacementPolicy")  # the kinds that it reads
COMPONENT = "own-scheduler"  # in labels: a second kube-scheduler is called scheduler there
DEPLOYMENT = LEASE  # also account, budget, roles
CONFIG = f"{DEPLOYMENT}-config"
CONFIG_FILE, CONFIG_FOLDER = "scheduler-config.yaml", "/etc/wukong/scheduler"
PROBES_PORT = 8080


class SchedulerInstallation(Installation, frozen=True, kw_only=True):
    scheduler: SchedulerOptions = SchedulerOptions()  # its configuration is a file of this machine
    options: Sequence[str] = ()  # of `wukong run`, one word each, such as --default-strategy=none


def check_installation(installation: SchedulerInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*find_namespace_problems(installation), *find_memory_problems(installation)]
    problems += find_problems(installation.scheduler, lambda field: f"--{field.replace('_', '-')}")
    names = [component.name for component in installation.components]
    if NAME not in names:
        problems.append(f"--components: expected {NAME} among them, got {','.join(names)}. Add it.")
    if problems:
        raise InputError(*problems)
    read_profiles(installation.scheduler)


def build_manifests(installation: SchedulerInstallation, certificates: None = None) -> list[Document]:
    """Everything that is to be applied. It serves nothing but probes, so there are no certificates."""
    lease = name_lease(installation.scheduler)
    permissions = list_permissions(installation.components, {}, lease)
    probed = {"ports": [workload.build_port(PROBES_PORT)]}  # the kubelet and Prometheus, wherever they are
    return [
        *(crd for crd in build_crds() if crd["spec"]["names"]["kind"] in POLICIES),
        workload.build_namespace(installation),
        workload.build_critical_pods_quota(installation),
        rbac.build_account(installation, DEPLOYMENT, COMPONENT),
        *rbac.build_roles(installation, DEPLOYMENT, COMPONENT, permissions),
        *([build_config(installation)] if installation.scheduler.scheduler_config else []),
        workload.build_deployment(installation, DEPLOYMENT, COMPONENT, build_pod(installation), {}),
        workload.build_budget(installation, DEPLOYMENT, COMPONENT),
        workload.build_network_policy(installation, DEPLOYMENT, COMPONENT, [probed]),
    ]


def build_config(installation: SchedulerInstallation) -> Document:
    text = read_settings(installation.scheduler.scheduler_config).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": build_meta(installation, CONFIG, COMPONENT),
        "data": {CONFIG_FILE: text},
    }


def build_pod(installation: SchedulerInstallation) -> Document:
    has_config = bool(installation.scheduler.scheduler_config)
    container = workload.build_controller_container(
        installation, build_arguments(installation), PROBES_PORT, cpu="500m"
    )
    if not has_config:
        return {"containers": [container]}
    container["volumeMounts"] = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]
    return {"containers": [container], "volumes": [{"name": "config", "configMap": {"name": CONFIG}}]}


def build_arguments(installation: SchedulerInstallation) -> list[str]:
    """The command line of `wukong run`, one word each."""
    names = ",".join(component.name for component in installation.components)
    scheduler = installation.scheduler
    words = ["run", f"--components={names}", f"--scheduler-name={','.join(scheduler.scheduler_name)}"]
    if scheduler.scheduler_config:
        words.append(f"--scheduler-config={CONFIG_FOLDER}/{CONFIG_FILE}")
    words += [f"--probes=:{PROBES_PORT}", f"--lease={installation.namespace}/{name_lease(scheduler)}"]
    return [*words, "--log-format=json", *installation.options]
