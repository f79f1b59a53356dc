"""The Node that the agent runs on, at the API server: its annotation of notices is read and written, and nothing else.

Every call is one request and repeats nothing, except after a 401 with renewed credentials. Raises ClusterError.
"""

from __future__ import annotations

import msgspec

from wukong.api.json_values import decode_json
from wukong.api.kinds import NODES
from wukong.api.meta import Base
from wukong.cluster.api_status import build_error
from wukong.cluster.credentials import Credentials, Headers
from wukong.cluster.single_exchange import Answer, ExchangeError, Request, exchange
from wukong.errors import ClusterError, InputError, ServerFailed
from wukong.placement.leaving_nodes import NOTICE

ANSWER_SECONDS = 10.0
MOST_BYTES = 4 << 20  # an object has at most 1.5 MB, as JSON a little more
_MERGE_PATCH = "application/merge-patch+json"


class _Meta(Base):
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Spec(Base):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(Base):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class NodeView(msgspec.Struct, frozen=True):
    """What the agent knows of its Node, at one version."""

    uid: str
    resource_version: str
    provider_id: str
    notice: str | None  # the annotation's text


_decoder = msgspec.json.Decoder(_Node)


class OwnNode:
    """Raises InputError at once where a proxy would be needed."""

    def __init__(self, credentials: Credentials, name: str) -> None:
        if credentials.proxy:
            raise InputError("the agent asks API servers directly, and this kubeconfig or $HTTPS_PROXY names a proxy.")
        self.name, self._credentials = name, credentials
        self._url = credentials.server + NODES.path("", name)

    async def read(self) -> NodeView:
        return _read_node(await self._send("GET"))

    async def annotate(self, node: NodeView, text: str | None) -> NodeView:
        """Set or remove the annotation, of this very Node at this version: else Conflict."""
        meta = {"uid": node.uid, "resourceVersion": node.resource_version, "annotations": {NOTICE: text}}
        return _read_node(await self._send("PATCH", msgspec.json.encode({"metadata": meta})))

    async def _send(self, method: str, body: bytes | None = None) -> bytes:
        headers = await self._credentials.headers()
        answer = await self._exchange(method, headers, body)
        if answer.status == 401 and await self._credentials.renew(headers):
            answer = await self._exchange(method, await self._credentials.headers(), body)
        if answer.status >= 300:
            raise build_error(answer.status, answer.body, is_write=method != "GET")
        return answer.body

    async def _exchange(self, method: str, headers: Headers, body: bytes | None) -> Answer:
        content = [("Content-Type", _MERGE_PATCH)] if body is not None else []
        query = "?fieldManager=wukong-agent" if body is not None else ""
        request = Request(method, self._url + query, [*headers, ("Accept", "application/json"), *content], body)
        try:
            return await exchange(
                request,
                seconds=ANSWER_SECONDS,
                most_bytes=MOST_BYTES,
                tls=self._credentials.tls,
                server_name=self._credentials.tls_server_name,
            )
        except ExchangeError as error:
            self._credentials.reload_authority()  # for the next attempt: clusters replace theirs
            raise ServerFailed(f"{self._credentials.server}: {error}", reason="Unreachable") from None


def _read_node(body: bytes) -> NodeView:
    try:
        node = decode_json(body, _decoder)
    except (InputError, msgspec.ValidationError) as error:
        raise ClusterError(f"the API server's answer is no Node: {error}") from None
    meta = node.metadata
    return NodeView(meta.uid, meta.resource_version, node.spec.provider_id, meta.annotations.get(NOTICE))
