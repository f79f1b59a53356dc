"""The EndpointSlice controller: keeps the slices of every Service that has a selector.

Follows kube-controller-manager 1.35. A Service without any endpoint has one empty slice. Topology hints are not set.
Nobody here reads slices but stories and people: they tell who is reached while pods come and go. They are derived, so
no snapshot holds them; they are made anew when one is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Action, Create, Delete, Outcome, Patch
from wukong.api.core import Pod, Service
from wukong.api.discovery import MANAGER, MANAGER_LABEL, SERVICE_LABEL, EndpointSlice
from wukong.api.kinds import ENDPOINT_SLICES, NODES, PODS, SERVICES
from wukong.api.meta import LabelSelector, Object
from wukong.api.resources import Key
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.backoff import SERVICE_BACKOFF
from wukong.embedded.actors.endpoint_slices.endpoints import ZONE, Ports, find_endpoints
from wukong.embedded.actors.endpoint_slices.service_index import ServiceIndex
from wukong.embedded.actors.endpoint_slices.slices import plan_slices
from wukong.embedded.world.objects import Pod as WholePod
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

HEADLESS_LABEL = "service.kubernetes.io/headless"
LOST_NODE_SECONDS = 1.0  # until a pod whose node is gone is looked at again, unless something happens before


def _keys_of_pod(change: Change, state: State) -> Iterable[Key]:
    """The Services of a pod, where something of it changed that its endpoint shows."""
    index, old, new = state.index_of(ServiceIndex), change.old, change.new
    if not index.selects_in(change.key.namespace):
        return ()
    if isinstance(old, Pod) and isinstance(new, Pod) and _shown_of(old) == _shown_of(new):
        return ()
    keys = [index.of(pod) for pod in (old, new) if isinstance(pod, Pod)]
    return sorted({key for entry in keys for key in entry})


def _shown_of(pod: Pod) -> tuple[object, ...]:
    document: Document = getattr(pod, "document", {})
    address = (document.get("status") or {}).get("podIP")
    return pod.metadata.labels, pod.is_terminating, podlike.is_ready(pod), pod.is_finished, address, pod.spec.node_name


def _keys_of_node(change: Change, state: State) -> Iterable[Key]:
    """The Services of the pods on a node that comes, goes, or changes its zone."""
    zones = [subject.metadata.labels.get(ZONE) if subject is not None else None for subject in (change.old, change.new)]
    if change.old is not None and change.new is not None and zones[0] == zones[1]:
        return ()
    index = state.index_of(ServiceIndex)
    return sorted({key for pod in state.pods_on(change.key.name) for key in index.of(pod)})


def _keys_of_slice(change: Change, _: State) -> Iterable[Key]:
    subject: Object | None = change.new or change.old
    name = subject.metadata.labels.get(SERVICE_LABEL) if subject is not None else None
    return (Key(change.key.namespace, name),) if name else ()


class EndpointSlices:
    name = "endpointslice"
    backoff = SERVICE_BACKOFF
    watches = (
        Watch(SERVICES),
        Watch(PODS, _keys_of_pod, is_secondary=True),
        Watch(NODES, _keys_of_node, is_secondary=True),
        Watch(ENDPOINT_SLICES, _keys_of_slice, is_secondary=True),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        service = state.get(Service, key)
        if service is None or service.spec.selector is None or service.spec.type == "ExternalName":
            return DONE  # garbage collection removes the slices of a Service that is gone
        selector = LabelSelector(match_labels=service.spec.selector)
        found = (state.get(WholePod, pod_key) for pod_key in state.pods.list_matching(key.namespace, selector))
        pods = [pod for pod in found if pod is not None]
        actions: list[Action] = []
        has_lost_nodes = False
        for family in service.spec.ip_families or ["IPv4"]:
            desired = find_endpoints(service, pods, state, family)
            has_lost_nodes = has_lost_nodes or desired.has_lost_nodes
            actions += _plan(service, _list_slices(service, state, family), desired.by_ports, family)
        return Outcome(tuple(actions), LOST_NODE_SECONDS if has_lost_nodes else None)


def _list_slices(service: Service, state: State, family: str) -> list[EndpointSlice]:
    keys = state.owners.owned_by(service.metadata.uid, ENDPOINT_SLICES)
    owned = (state.get(EndpointSlice, key) for key in sorted(keys))
    return [
        entry
        for entry in owned
        if entry is not None
        and entry.address_type == family
        and entry.metadata.deletion_timestamp is None
        and entry.metadata.labels.get(MANAGER_LABEL) == MANAGER
    ]


def _plan(
    service: Service, slices: list[EndpointSlice], desired: dict[Ports, dict[str, Document]], family: str
) -> list[Action]:
    labels = _labels_of(service)
    existing: dict[Ports, list[EndpointSlice]] = {}
    for entry in slices:
        existing.setdefault(_ports_of(entry), []).append(entry)
    actions: list[Action] = []
    created_count, deleted = 0, [name for ports in existing.keys() - desired.keys() for name in _names(existing[ports])]
    for ports, endpoints in sorted(desired.items(), key=lambda item: str(item[0])):
        present = existing.get(ports, [])
        plan = plan_slices([(entry.metadata.name, _endpoints_of(entry)) for entry in present], endpoints)
        actions += [_create(service, ports, entry, labels, family) for entry in plan.created]
        changed = {
            **{entry.metadata.name: None for entry in present if entry.metadata.labels != labels},
            **plan.updated,
        }
        actions += [_update(service, name, plan.updated.get(name), labels) for name in sorted(changed)]
        created_count += len(plan.created)
        deleted += plan.deleted
    if len(deleted) == len(slices) and not created_count:
        is_placeholder = len(slices) == 1 and not slices[0].endpoints and not slices[0].ports
        if is_placeholder and deleted:
            return []
        actions.append(_create(service, (), [], labels, family))
    return [*actions, *(Delete(ENDPOINT_SLICES, Key(service.metadata.namespace, name)) for name in sorted(deleted))]


def _names(slices: list[EndpointSlice]) -> list[str]:
    return [entry.metadata.name for entry in slices]


def _ports_of(entry: EndpointSlice) -> Ports:
    return tuple((port.name, port.port or 0, port.protocol, port.app_protocol) for port in entry.ports)


def _endpoints_of(entry: EndpointSlice) -> list[Document]:
    endpoints: list[Document] = getattr(entry, "document", {}).get("endpoints") or []
    return endpoints


def _labels_of(service: Service) -> dict[str, str]:
    labels = {**service.metadata.labels, SERVICE_LABEL: service.metadata.name, MANAGER_LABEL: MANAGER}
    return {**labels, HEADLESS_LABEL: ""} if service.spec.cluster_ip == "None" else labels


def _create(service: Service, ports: Ports, endpoints: list[Document], labels: dict[str, str], family: str) -> Create:
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": service.metadata.name,
        "uid": service.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body: Document = {
        "metadata": {"generateName": f"{service.metadata.name}-", "labels": labels, "ownerReferences": [owner]},
        "addressType": family,
        "endpoints": endpoints,
        "ports": [_build_port(*port) for port in ports],
    }
    return Create(ENDPOINT_SLICES, body, service.metadata.namespace)


def _build_port(name: str, number: int, protocol: str, app_protocol: str | None) -> Document:
    port: Document = {"name": name, "port": number, "protocol": protocol}
    return port if app_protocol is None else {**port, "appProtocol": app_protocol}


def _update(service: Service, name: str, endpoints: list[Document] | None, labels: dict[str, str]) -> Patch:
    body: Document = {"metadata": {"labels": labels}}
    if endpoints is not None:
        body["endpoints"] = endpoints
    patch = PatchBody("merge", body, manager="kube-controller-manager")
    return Patch(ENDPOINT_SLICES, Key(service.metadata.namespace, name), patch)
