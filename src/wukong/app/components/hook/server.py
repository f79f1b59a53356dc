"""The hook at work: notices over HTTPS, written on Nodes as annotations, where the component spot reads them.

Every replica takes them, not only the one that leads: what is on the Node survives all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
from prometheus_client import Counter

from wukong.api.kinds import NODES
from wukong.api.meta import Base, ObjectMeta
from wukong.api.resources import Key
from wukong.app.addresses import read_address
from wukong.app.component import Context
from wukong.app.components.hook.options import HookOptions
from wukong.errors import Conflict, InputError, NotFound
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.notice_annotation import RECLAIM, RECOMMEND, state_notice, update_annotation
from wukong.ports import Clock, Cluster, PatchBody
from wukong.runtime import Loop
from wukong.serve.bearer_tokens import BearerTokens
from wukong.serve.connections import count_connections
from wukong.serve.notices.request import RequestedNotice
from wukong.serve.notices.server import AmbiguousMachineError, WrittenNotice, build_hook_app
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles

CONNECTIONS = 64
LOOK_SECONDS = 5.0  # between two lists of all nodes for ids that nobody knows
_PAGE = 500
_CONFLICTS = 5
log = logging.getLogger(__name__)


class _Spec(Base):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(Base):
    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class MachineIds:
    """The Node of a provider id, or of an instance id, which is its last part. All nodes are listed for a new one."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._names: dict[str, set[str]] = {}
        self._looked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, machine_id: str) -> str:
        """Raises NotFound, AmbiguousMachineError, and other ClusterErrors."""
        async with self._lock:
            if machine_id not in self._names and self._clock.now() - self._looked_at >= LOOK_SECONDS:
                await self._look()
        names = self._names.get(machine_id, set())
        if not names:
            raise NotFound(f"{machine_id}: no Node has this id in its spec.providerID")
        if len(names) > 1:
            raise AmbiguousMachineError(f"{machine_id}: {len(names)} Nodes have this id. Send the whole providerID")
        return next(iter(names))

    async def _look(self) -> None:
        names: dict[str, set[str]] = {}
        token = ""
        while True:
            page = await self._cluster.list(NODES, _Node, limit=_PAGE, token=token)
            for node in page.items:
                for machine_id in list_ids(node.spec.provider_id):
                    names.setdefault(machine_id, set()).add(node.metadata.name)
            token = page.token
            if not token:
                break
        self._names, self._looked_at = names, self._clock.now()


def list_ids(provider_id: str) -> set[str]:
    """`aws:///eu-west-1a/i-0a1b` and `i-0a1b`; of `cn-hangzhou.i-bp1` what is behind the dot as well."""
    if not provider_id:
        return set()
    last = provider_id.rpartition("/")[2]
    return {provider_id, last, last.rpartition(".")[2]} - {""}


class AnnotationWriter:
    """Writes notices on Nodes, at the version that was read."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock, self._ids = cluster, clock, MachineIds(cluster, clock)

    async def write(self, notice: RequestedNotice) -> WrittenNotice:
        name = notice.node or await self._ids.find(notice.provider_id or notice.instance_id)
        for _ in range(_CONFLICTS):
            try:
                return await self._annotate(name, notice)
            except Conflict:
                continue  # somebody else changed the Node meanwhile
        raise Conflict(f"node {name} changes faster than it can be annotated")

    async def _annotate(self, name: str, notice: RequestedNotice) -> WrittenNotice:
        node = await self._cluster.get(NODES, Key("", name), _Node)
        text, source = node.metadata.annotations.get(NOTICE), f"hook {notice.source}"
        course = RECOMMEND if notice.is_soft else RECLAIM
        wanted = None if notice.is_withdrawn else state_notice(source, course, notice.action, notice.deadline)
        update = update_annotation(text, wanted, source, self._clock.now(), is_exact=notice.is_exact)
        if update is None:
            return WrittenNotice(name, text, is_changed=False)
        meta = node.metadata
        body = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": {NOTICE: update.text}}
        await self._cluster.patch(NODES, Key("", name), PatchBody("merge", {"metadata": body}))
        log.info("a notice came", extra={"node": name, "source": source, "notice": update.text or "withdrawn"})
        return WrittenNotice(name, update.text, is_changed=True)


class HookServer:
    """Raises InputError when it starts without a token, or with files that cannot be used."""

    def __init__(self, options: HookOptions, context: Context) -> None:
        self.options, self.context = options, context

    async def start(self, stack: AsyncExitStack, loop: Loop) -> Coroutine[None, None, None]:
        """Listen until the stack is left. Nothing must run beside."""
        metrics, clock, options = self.context.metrics, self.context.clock, self.options
        assert metrics is not None, "who listens reports how it does"
        answers = Counter(
            "wukong_hook_answers_total", "Answers to POST /notices, by code", ["code"], registry=metrics.registry
        )
        try:
            tokens = BearerTokens(Path(options.token_file))
        except InputError as error:
            raise error.at("--hook-token-file") from None
        files = None if options.plain_http else CertificateFiles(Path(options.cert), Path(options.key), None)
        app = build_hook_app(
            AnnotationWriter(loop.cluster, clock),
            tokens.authorize,
            clock,
            lambda code: answers.labels(str(code)).inc(),
        )
        host, port = read_address(options.address)
        tls = files.build_context() if files else None
        try:
            port = await serve(stack, app, host, port, tls, count_connections(metrics, "hook", CONNECTIONS))
        except InputError as error:
            raise error.at("--hook") from None
        log.info("the hook listens", extra={"host": host, "port": port, "tls": tls is not None})
        return _wait_for_ever()


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()
