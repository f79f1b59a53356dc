"""What KubeVirt says to the eviction of a virt-launcher pod (webhook virt-launcher-eviction-interceptor, 1.7).

    evictionStrategy                            migratable    answer
    None, or not set                                          not its business: the API server goes on
    LiveMigrate                                 yes           429: marked, and the evacuation controller migrates it
    LiveMigrate                                 no            429: never
    LiveMigrateIfPossible                       yes           429, as LiveMigrate
    LiveMigrateIfPossible                       no            not its business
    External                                                  429: marked, and whoever evicts it migrates it

Called by store/eviction.py for pods with the label `kubevirt.io: virt-launcher`. By the mark, `evacuationNodeName` in
the status of the instance, an eviction is accepted although it is answered by an error.
"""

from __future__ import annotations

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES
from wukong.api.resources import Key
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import condition_of, meta_of, value_at
from wukong.embedded.store.kinds import store_name
from wukong.embedded.store.kubevirt import names
from wukong.errors import TooManyRequests
from wukong.ports import Document

WEBHOOK = "virt-launcher-eviction-interceptor.kubevirt.io"
_INSTANCES = store_name(VIRTUAL_MACHINE_INSTANCES)


def is_launcher(pod: Document) -> bool:
    labels = meta_of(pod).get("labels")
    return labels is not None and labels.get(names.LAUNCHER_LABEL) == names.LAUNCHER


def intercept_eviction(database: Database, pod: Document) -> None:
    """Raise TooManyRequests where KubeVirt takes the eviction upon itself, or refuses it; else do nothing."""
    if value_at(pod, "status.phase") in names.FINAL_PHASES:
        return
    namespace, annotations = meta_of(pod).get("namespace", ""), meta_of(pod).get("annotations") or {}
    name = annotations.get(names.DOMAIN_ANNOTATION)
    if name is None:
        return
    instance = database.get(_INSTANCES, Key(namespace, name))
    if instance is None:
        missing = f'virtualmachineinstances.kubevirt.io "{name}" not found'
        raise _deny(f"kubevirt failed getting the vmi: {missing}")
    strategy = value_at(instance, "spec.evictionStrategy")
    is_migratable = (condition_of(instance, "LiveMigratable") or {}).get("status") == "True"
    if strategy == "LiveMigrate" and not is_migratable:
        raise _deny(f"VMI {name} is configured with an eviction strategy but is not live-migratable")
    if strategy not in ("LiveMigrate", "External") and not (strategy == "LiveMigrateIfPossible" and is_migratable):
        return
    accepted = f'Eviction triggered evacuation of VMI "{namespace}/{name}"'
    if value_at(instance, "status.evacuationNodeName"):
        raise _deny(f"Evacuation in progress: {accepted}")
    node = value_at(pod, "spec.nodeName") or ""
    if (value_at(instance, "status.nodeName") or "") != node:
        raise _deny("Eviction request for target Pod")
    database.put(_INSTANCES, {**instance, "status": {**(instance.get("status") or {}), "evacuationNodeName": node}})
    raise _deny(accepted)


def _deny(message: str) -> TooManyRequests:
    return TooManyRequests(f'admission webhook "{WEBHOOK}" denied the request: {message}')
