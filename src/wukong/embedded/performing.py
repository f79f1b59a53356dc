"""Actions become calls of the embedded API server, at once. The world performs with it what controllers decide.

The twin of runtime.perform without a network: there is no answer to be lost, so nothing is looked at again. Raises the
ClusterErrors of errors.py; to remove what is gone already is no failure. Never decides what to do.
"""

from __future__ import annotations

from wukong.actions import Action, Bind, Create, Delete, Evict, Note, Patch, Scale
from wukong.embedded.store import Server
from wukong.embedded.store.deleting import Options
from wukong.errors import NotFound
from wukong.ports import PatchBody

FINALIZE = "finalize"  # of a Namespace: the last word, which only its controller has


def perform(server: Server, action: Action) -> None:
    match action:
        case Create(resource, body, namespace):
            server.create(resource, body, namespace or (body.get("metadata") or {}).get("namespace", ""))
        case Patch(_, key, _, subresource) if subresource == FINALIZE:
            server.finalize(key.name)
        case Patch(resource, key, patch, subresource):
            server.patch(resource, key, patch, subresource)
        case Delete() | Evict():
            _remove(server, action)
        case Bind(key, node, uid):
            server.bind(key, node, uid)
        case Scale(resource, key, replicas, version):
            meta = {"metadata": {"resourceVersion": version}} if version else {}
            server.patch(resource, key, PatchBody("merge", {**meta, "spec": {"replicas": replicas}}), "scale")
        case Note():
            pass  # an Event changes nothing that happens; the world's trace has it


def _remove(server: Server, action: Delete | Evict) -> None:
    try:
        if isinstance(action, Evict):
            server.evict(action.key, Options(uid=action.uid, grace_seconds=action.grace_seconds))
        else:
            options = Options(action.uid, action.resource_version, action.grace_seconds, action.propagation)
            server.delete(action.resource, action.key, options)
    except NotFound:
        return
