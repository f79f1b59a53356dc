"""Sends the same requests to a real server and to the embedded store, and makes their answers comparable.

Not compared: what no two servers share (uids, versions, times), the owners of fields, what controllers write meanwhile,
and the token that a real server mounts into pods. Used by test_against_kube.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wukong.api.kinds import CONFIG_MAPS
from wukong.api.kinds import KINDS as TABLE
from wukong.api.resources import Key, Resource
from wukong.errors import ClusterError
from wukong.ports import Cluster, Document, PatchBody

VARYING_METADATA = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "namespace"}
)
TOKEN_VOLUME = "kube-api-access-"
CONTROLLER_ANNOTATION = "deployment.kubernetes.io/"
TIMES = frozenset({"lastTransitionTime", "lastProbeTime"})


class Answer(NamedTuple):
    """What a server answered: the object, or the type and code of its error."""

    object: Document | None = None
    error: str = ""
    code: int = 0
    message: str = ""  # not compared

    @property
    def compared(self) -> tuple[Document | None, str, int]:
        return self.object, self.error, self.code


class TwinClusters:
    """A real cluster and an embedded one, each with a namespace of its own for this comparison."""

    def __init__(self, real: Cluster, embedded: Cluster, namespaces: tuple[str, str]) -> None:
        self.both = (real, embedded)
        self.namespaces = namespaces
        self._created: list[tuple[Resource, str]] = []

    async def create(self, resource: Resource, body: Document) -> tuple[Answer, Answer]:
        self._created.append((resource, body["metadata"]["name"]))
        return tuple(
            [
                await answer(cluster.create(resource, body, namespace if resource.namespaced else ""))
                for cluster, namespace in zip(self.both, self.namespaces, strict=True)
            ]
        )  # type: ignore[return-value]

    async def patch(
        self, resource: Resource, name: str, patch: PatchBody, subresource: str = ""
    ) -> tuple[Answer, Answer]:
        return tuple(
            [
                await answer(cluster.patch(resource, Key(namespace, name), patch, subresource))
                for cluster, namespace in zip(self.both, self.namespaces, strict=True)
            ]
        )  # type: ignore[return-value]

    async def release(self) -> None:
        """Remove the finalizers of all objects, so that the real namespace can be deleted after the test."""
        for resource, name in self._created:
            patch = PatchBody("merge", {"metadata": {"finalizers": None}})
            await answer(self.both[0].patch(resource, Key(self.namespaces[0], name), patch))


async def answer(request: Any) -> Answer:
    try:
        return Answer(comparable(await request))
    except ClusterError as error:
        return Answer(None, type(error).__name__, error.code, str(error))


def comparable(document: Document) -> Document:
    """Return the object without what differs between any two servers."""
    fields = {
        name: value for name, value in document.items() if name not in ("status", "metadata", "apiVersion", "kind")
    }
    meta = {name: value for name, value in document["metadata"].items() if name not in VARYING_METADATA}
    if document["kind"] == "Deployment":  # its annotations count, and its controller writes one
        meta.pop("generation", None)
    meta["annotations"] = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if not key.startswith(CONTROLLER_ANNOTATION)
    }
    if document["kind"] in ("Pod", "Node", "ConfigMap"):
        fields["status"] = document.get("status")
    return {"metadata": meta, **_without_tokens(fields)}


def _without_tokens(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {name: _without_tokens(entry) for name, entry in value.items() if name not in TIMES}
        for name in ("volumes", "volumeMounts"):
            if fields.get(name) == []:
                del fields[name]
        return fields
    if isinstance(value, list):
        return [_without_tokens(item) for item in value if not _is_token(item)]
    return value


def _is_token(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("name", "")).startswith(TOKEN_VOLUME)


KINDS: dict[str, Resource] = {
    **{kind.resource.kind: kind.resource for kind in TABLE.list_deciding()},
    "ConfigMap": CONFIG_MAPS,
}
