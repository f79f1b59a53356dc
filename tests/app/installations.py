"""What `wukong manifests` prints for some installations, kept as files, so that every change of it is seen.

`python -m app.installations` writes them anew (PYTHONPATH=src:tests). Certificates are texts here: theirs are random.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from wukong.app.agent.install import AgentInstallation
from wukong.app.agent.install import build_manifests as build_agent_manifests
from wukong.app.components import COMPONENTS
from wukong.app.components.admission.install import AdmissionInstallation
from wukong.app.components.admission.install import build_manifests as build_admission_manifests
from wukong.app.components.extender.install import ExtenderInstallation, SecondScheduler, build_manifests
from wukong.app.components.hook.install import HookSecrets, add_hook, with_hook
from wukong.app.components.ledger import LEDGER
from wukong.app.components.ledger.install import build_ledger_manifests
from wukong.app.components.ledger.install import make_installation as make_ledger_installation
from wukong.app.components.rollout.install import make_installation as make_rollout_installation
from wukong.app.components.scheduler import SCHEDULER, SchedulerOptions
from wukong.app.components.scheduler import install as scheduler_install
from wukong.app.components.spot.install import make_installation as make_spot_installation
from wukong.app.components.vm import VM
from wukong.app.components.vm.install import make_installation as make_vm_installation
from wukong.app.install.certificates import Certificates, Pair
from wukong.app.install.controller import build_manifests as build_controller_manifests
from wukong.app.install.text import as_yaml

FOLDER = Path(__file__).parents[1] / "golden" / "installations"
ALL = tuple(COMPONENTS[name] for name in ("usage", "load", "extender", "policy"))
CERTIFICATES = Certificates(
    authority=b"authority\n",
    server=Pair(b"server\n", b"server's key\n"),
    client=Pair(b"client\n", b"client's key\n"),
    expire=datetime(2026, 11, 16, 12, tzinfo=UTC),
)
INSTALLATIONS = {
    "second-scheduler": ExtenderInstallation(
        image="wukong:test", components=ALL, second=SecondScheduler(image="kube-scheduler:test"), critical_priority=1000
    ),
    "own-scheduler": ExtenderInstallation(
        image="wukong:test", components=ALL, namespace="placement", replicas=3, cluster_ip="10.96.0.50"
    ),
    "plain": ExtenderInstallation(
        image="wukong:test", components=ALL, is_plain=True, prometheus="http://prometheus:9090"
    ),
}
SCHEDULERS = {
    "scheduler": scheduler_install.SchedulerInstallation(
        image="wukong:test",
        components=(SCHEDULER,),
        scheduler=SchedulerOptions(("custom-scheduler", "gpu-scheduler")),
    ),
}
ADMISSION = tuple(COMPONENTS[name] for name in ("admission", "policy"))
ADMISSION_INSTALLATIONS = {
    "admission": AdmissionInstallation(image="wukong:test", components=ADMISSION),
    "admission-own-certificate": AdmissionInstallation(
        image="wukong:test",
        components=ADMISSION,
        namespace="placement",
        replicas=3,
        certificate_secret="webhook-tls",
        ca_bundle=b"authority\n",
        api_server_cidrs=("10.0.0.0/28",),
    ),
}
CONTROLLERS = {
    "vm": make_vm_installation(
        image="wukong:test", components=(VM, COMPONENTS["load"]), options=("--max-priority=500",)
    ),
    "spot": make_spot_installation(image="wukong:test", components=(COMPONENTS["spot"],)),
    "rollout": make_rollout_installation(image="wukong:test", components=(COMPONENTS["rollout"],)),
}
HOOKED = {"spot-hook": with_hook(CONTROLLERS["spot"])}
LEDGERS = {
    "ledger": make_ledger_installation(image="wukong:test", components=(LEDGER,), replicas=1, storage_class="fast"),
}
AGENTS = {
    "agent": AgentInstallation(image="wukong:test", components=()),
    "agent-host-network": AgentInstallation(
        image="wukong:test",
        components=(),
        namespace="machines",
        has_host_network=True,
        is_for_spot_nodes=True,
        options=("--cloud=gcp",),
    ),
}
NAMES = (*INSTALLATIONS, *SCHEDULERS, *ADMISSION_INSTALLATIONS, *CONTROLLERS, *HOOKED, *LEDGERS, *AGENTS)


def build_text(name: str) -> str:
    if name in LEDGERS:
        return as_yaml(build_ledger_manifests(LEDGERS[name]))
    if name in AGENTS:
        return as_yaml(build_agent_manifests(AGENTS[name]))
    if name in CONTROLLERS or name in HOOKED:  # deploy/crds has the kind
        installation = CONTROLLERS.get(name) or HOOKED[name]
        documents = build_controller_manifests(installation)
        if name in HOOKED:
            documents = add_hook(documents, installation, HookSecrets("hook-token", "hook-tls"))
        return as_yaml([document for document in documents if document["kind"] != "CustomResourceDefinition"])
    if name in ADMISSION_INSTALLATIONS:
        return as_yaml(build_admission_manifests(ADMISSION_INSTALLATIONS[name]))
    if name in SCHEDULERS:
        return as_yaml(scheduler_install.build_manifests(SCHEDULERS[name]))
    extender = INSTALLATIONS[name]
    return as_yaml(build_manifests(extender, None if extender.is_plain else CERTIFICATES))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        (FOLDER / f"{name}.yaml").write_text(build_text(name), "utf-8")
