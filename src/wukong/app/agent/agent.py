"""The agent: asks the cloud for ever, and keeps the notice on its Node as the cloud says.

    poll ─► wanted ─► write: read the Node, annotate it, acknowledge

Two tasks, so that a long question does not keep a write waiting, nor an API server that is away the questions. What the
cloud does not answer changes nothing: only its word that there is no notice withdraws one. Nothing that a metadata
server or an API server says ends the loop; it is asked again after a pause that doubles up to a bound.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from wukong.app.agent.own_node import OwnNode
from wukong.cluster.metadata.choice import recognize_cloud
from wukong.cluster.metadata.cloud import Cloud, CloudNotice
from wukong.errors import Conflict, WukongError
from wukong.placement.notice_annotation import (
    RECLAIM,
    RECOMMEND,
    StatedNotice,
    state_notice,
    update_annotation,
)

FIRST_SECONDS, LAST_SECONDS = 0.5, 15.0  # between tries; a notice may have only 30 s
VERIFY_SECONDS = 15.0  # while a notice stands: somebody may have removed it
CLOUD_SECONDS = 60.0  # until a Node that does not say in which cloud it is, is looked at again
_CONFLICTS = 5
log = logging.getLogger(__name__)


class AgentPorts(msgspec.Struct, frozen=True):
    """What the agent is given of the world."""

    now: Callable[[], float]
    random: Callable[[], float]


class Agent:
    """Keeps what the cloud said last on the Node. With `acknowledges` the cloud is then told to go ahead."""

    def __init__(self, cloud: Cloud, node: OwnNode, ports: AgentPorts, *, acknowledges: bool = False) -> None:
        self._cloud, self._node, self._ports, self._acknowledges = cloud, node, ports, acknowledges
        self._source = f"agent {cloud.name}"
        self._wanted: CloudNotice | None = None
        self._was_asked = False
        self._changed = asyncio.Event()
        self._acknowledged = ""  # the event that was acknowledged last

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_polling())
            tasks.create_task(self._keep_writing())

    async def _keep_polling(self) -> None:
        retries = Retries(self._ports.random, "the cloud does not say whether there is a notice")
        while True:
            try:
                self._take(await self._cloud.poll())
            except Exception as error:  # whatever a metadata server makes of us: the next answer may be a notice
                await retries.wait(error)
            else:
                retries.succeed()
                await asyncio.sleep(self._cloud.pause_seconds)

    def _take(self, notice: CloudNotice | None) -> None:
        before, self._wanted = self._wanted, notice
        if notice is not None and before is not None and is_repeated(before, notice):
            self._wanted = before
        if self._wanted != before or not self._was_asked:
            self._was_asked = True
            if notice is not None or before is not None:
                log.info("the cloud says", extra={"notice": notice and notice.action, "node": self._node.name})
            self._changed.set()

    async def _keep_writing(self) -> None:
        retries = Retries(self._ports.random, "the notice is not written")
        while True:
            await self._wait_for_change()
            self._changed.clear()
            try:
                await self._write()
            except Exception as error:  # also what nobody thought of: a notice that is not written is written later
                self._changed.set()
                await retries.wait(error)
            else:
                retries.succeed()

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(VERIFY_SECONDS if self._wanted is not None else None):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _write(self) -> None:
        """One look at the Node, and a patch if it does not say what it should. Raises ClusterError."""
        wanted = self._wanted
        for _ in range(_CONFLICTS):
            try:
                await self._annotate(wanted)
                break
            except Conflict:
                continue  # somebody else changed the Node meanwhile
        else:
            raise Conflict(f"node {self._node.name} changes faster than it can be annotated")
        if self._acknowledges and wanted is not None and wanted.event and wanted.event != self._acknowledged:
            if await self._cloud.acknowledge(wanted):
                log.info("acknowledged", extra={"event": wanted.event})
            self._acknowledged = wanted.event

    async def _annotate(self, wanted: CloudNotice | None) -> None:
        node, stated = await self._node.read(), self._state(wanted)
        is_exact = wanted is None or wanted.is_exact
        update = update_annotation(node.notice, stated, self._source, self._ports.now(), is_exact=is_exact)
        if update is None:
            return
        await self._node.annotate(node, update.text)
        log.info("annotated", extra={"node": self._node.name, "notice": update.text or "withdrawn"})

    def _state(self, notice: CloudNotice | None) -> StatedNotice | None:
        if notice is None:
            return None
        return state_notice(self._source, RECOMMEND if notice.is_soft else RECLAIM, notice.action, notice.deadline)


def is_repeated(before: CloudNotice, notice: CloudNotice) -> bool:
    """Whether it is the notice of before, of which only our own count of seconds went on."""
    if before.is_exact or notice.is_exact:
        return before == notice
    return before._replace(deadline=None) == notice._replace(deadline=None)


async def find_cloud(node: OwnNode, ports: AgentPorts) -> str:
    """The name of the cloud that the Node says it is in. Waits until it says one of ours."""
    retries = Retries(ports.random, "the Node cannot be read")
    is_said = False
    while True:
        try:
            provider_id = (await node.read()).provider_id
        except Exception as error:  # as above: nothing that an API server says ends the agent
            await retries.wait(error)
            continue
        retries.succeed()
        if name := recognize_cloud(provider_id):
            return name
        if not is_said:
            log.warning(
                "spec.providerID names no cloud that is known here; waiting. Or say --cloud",
                extra={"node": node.name, "provider_id": provider_id[:100]},
            )
            is_said = True
        await asyncio.sleep(CLOUD_SECONDS)


class Retries:
    """Pauses after failures that double up to a bound, each shortened by chance; a failure is logged when it is new."""

    def __init__(self, random: Callable[[], float], message: str) -> None:
        self._random, self._message = random, message
        self._count, self._problem = 0, ""

    async def wait(self, error: Exception) -> None:
        problem = str(error) or type(error).__name__
        if problem != self._problem:
            is_expected = isinstance(error, WukongError)
            log.warning(self._message, extra={"error": problem}, exc_info=None if is_expected else error)
        self._problem = problem
        self._count += 1
        await asyncio.sleep(self.pause_seconds)

    @property
    def pause_seconds(self) -> float:
        longest = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._count - 1, 10))
        return longest * (0.5 + 0.5 * self._random())

    def succeed(self) -> None:
        if self._count:
            log.info("it goes on", extra={"after": self._message, "failures": self._count})
        self._count, self._problem = 0, ""
