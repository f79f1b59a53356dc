"""The agent keeps the annotation of its Node as the cloud says, whatever clouds and API servers do meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from metadata_server import GARBAGE, Asked, AwsServer, AzureServer, CloudServer, GcpServer, answer
from wukong.app.agent.agent import LAST_SECONDS, Agent, AgentPorts, Retries, find_cloud, is_repeated
from wukong.app.agent.own_node import OwnNode
from wukong.cluster.credentials import Credentials
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.cluster.metadata.aws import Aws
from wukong.cluster.metadata.azure import Azure
from wukong.cluster.metadata.cloud import Cloud, CloudNotice
from wukong.cluster.metadata.gcp import Gcp
from wukong.errors import Conflict, InputError, NotFound, ServerFailed
from wukong.placement.leaving_nodes import NOTICE

NOW = 1_800_000_000.0
MOMENT = "2027-01-15T08:02:00Z"  # two minutes from now
PORTS = AgentPorts(now=lambda: NOW, random=lambda: 0.0)


class NodeServer(CloudServer):
    """One Node, its version counted; a patch of another version is a conflict. `text` is its notice."""

    def __init__(self, text: str | None = None, provider_id: str = "aws:///a/i-1") -> None:
        super().__init__()
        self.version, self.provider_id = 1, provider_id
        self.annotations: dict[str, Any] = {"other": "stays"} | ({} if text is None else {NOTICE: text})
        self.changed = asyncio.Condition()
        self.conflicts = 0  # so many patches meet somebody else's change

    @property
    def text(self) -> str | None:
        return self.annotations.get(NOTICE)

    @property
    def stated(self) -> dict[str, Any]:
        return {} if self.text is None else json.loads(self.text)

    async def respond(self, asked: Asked) -> bytes | None:
        if asked.path != "/api/v1/nodes/n1":
            return answer(404, b'{"kind": "Status", "reason": "NotFound", "message": "no such node"}')
        if asked.method == "PATCH":
            assert asked.headers["content-type"] == "application/merge-patch+json"
            meta = json.loads(asked.body)["metadata"]
            if self.conflicts:
                self.conflicts, self.version = self.conflicts - 1, self.version + 1
            if meta["resourceVersion"] != str(self.version) or meta["uid"] != "u":
                return answer(409, b'{"kind": "Status", "reason": "Conflict", "message": "changed"}')
            self.annotations |= meta["annotations"]
            self.annotations = {name: text for name, text in self.annotations.items() if text is not None}
            self.version += 1
        async with self.changed:
            self.changed.notify_all()
        meta = {"name": "n1", "uid": "u", "resourceVersion": str(self.version), "annotations": self.annotations}
        return answer(200, json.dumps({"metadata": meta, "spec": {"providerID": self.provider_id}}).encode())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(holds)

    def build(self, name: str = "n1", token: str = "") -> OwnNode:
        login = Login(place="test", cluster=ClusterEntry(server=self.url), user=UserEntry(token=token))
        return OwnNode(Credentials(login, {}), name)


@asynccontextmanager
async def agent_running(cloud: Cloud, node: OwnNode, *, acknowledges: bool = False) -> AsyncIterator[None]:
    cloud.pause_seconds = 0.01
    task = asyncio.create_task(Agent(cloud, node, PORTS, acknowledges=acknowledges).run())
    try:
        yield
        assert not task.done(), "nothing ends the loop"
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.app.agent.agent.FIRST_SECONDS", 0.01)
    monkeypatch.setattr("wukong.app.agent.agent.LAST_SECONDS", 0.05)


async def test_a_notice_is_written_with_its_moment_and_source_and_taken_away_when_it_is_withdrawn() -> None:
    async with (
        AwsServer().running() as cloud,
        NodeServer().running() as node,
        agent_running(Aws(cloud.url), node.build()),
    ):
        await node.until(lambda: "GET" in [asked.method for asked in node.asked])
        assert node.text is None
        cloud.interrupt("terminate", MOMENT)
        await node.until(lambda: node.text is not None)
        assert node.stated == {"source": "agent aws", "action": "terminate", "deadline": MOMENT}
        cloud.action = None
        await node.until(lambda: node.text is None)
    assert node.annotations == {"other": "stays"}


async def test_a_recommendation_is_written_as_one_and_grows_to_an_interruption() -> None:
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        cloud.rebalance = json.dumps({"noticeTime": MOMENT}).encode()
        async with agent_running(Aws(cloud.url), node.build()):
            await node.until(lambda: node.text is not None)
            assert node.stated == {"source": "agent aws", "course": "Recommend", "action": "rebalance"}
            cloud.interrupt("terminate", MOMENT)
            await node.until(lambda: node.stated.get("action") == "terminate")


async def test_a_notice_left_by_an_agent_of_before_is_taken_away_if_the_cloud_knows_nothing_of_it() -> None:
    async with (
        AwsServer().running() as cloud,
        NodeServer('{"source": "agent aws"}').running() as node,
        agent_running(Aws(cloud.url), node.build()),
    ):
        await node.until(lambda: node.text is None)


async def test_a_notice_of_somebody_else_stays() -> None:
    async with (
        AwsServer().running() as cloud,
        NodeServer("2m").running() as node,
        agent_running(Aws(cloud.url), node.build()),
    ):
        await node.until(lambda: "GET" in [asked.method for asked in node.asked])
        cloud.interrupt("terminate", MOMENT)
        seen = len(node.asked)
        await node.until(lambda: len(node.asked) > seen)
    assert node.text == "2m"


@pytest.mark.parametrize("what", GARBAGE)
async def test_whatever_a_metadata_server_says_a_notice_stands_until_it_is_withdrawn(what: str) -> None:
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        cloud.interrupt("terminate", MOMENT)
        async with agent_running(Aws(cloud.url), node.build()):
            await node.until(lambda: node.text is not None)
            cloud.faults = [GARBAGE[what]] * 5
            async with asyncio.timeout(30):
                while cloud.faults:
                    cloud.was_asked.clear()
                    await cloud.was_asked.wait()
            assert node.text is not None
            cloud.action = None
            await node.until(lambda: node.text is None)


async def test_an_api_server_that_fails_or_conflicts_is_asked_again_while_the_cloud_waits() -> None:
    """The next answer of the cloud may be a minute away: writing does not wait for it."""
    async with GcpServer().running() as cloud, NodeServer(provider_id="gce://p/z/n").running() as node:
        cloud.set("TRUE")
        node.faults = [answer(500), None, b"HTTP/1.1 200 OK\r\n\r\nnot JSON", answer(403, b"{}")]
        node.conflicts = 3
        async with agent_running(Gcp(lambda: NOW, cloud.url), node.build()):
            await node.until(lambda: node.text is not None)
    assert node.stated == {"source": "agent gcp", "action": "preempt", "deadline": "2027-01-15T08:00:30Z"}
    assert node.conflicts == 0


async def test_a_node_that_always_changes_is_tried_again_later() -> None:
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        cloud.interrupt("stop", MOMENT)
        node.conflicts = 23
        async with agent_running(Aws(cloud.url), node.build()):
            await node.until(lambda: node.text is not None)


async def test_an_annotation_that_somebody_removes_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.app.agent.agent.VERIFY_SECONDS", 0.01)
    async with AwsServer().running() as cloud, NodeServer().running() as node:
        cloud.interrupt("stop", MOMENT)
        async with agent_running(Aws(cloud.url), node.build()):
            await node.until(lambda: node.text is not None)
            node.annotations, node.version = {}, node.version + 1
            await node.until(lambda: node.text is not None)


async def test_an_event_is_acknowledged_once_and_only_after_the_notice_is_written() -> None:
    async with AzureServer().running() as cloud, NodeServer().running() as node:
        cloud.schedule("e1")
        node.faults = [answer(500)] * 3
        cloud.faults = []
        async with agent_running(Azure(lambda: NOW, cloud.url), node.build(), acknowledges=True):
            await node.until(lambda: node.text is not None)
            written = len(cloud.started)
            async with asyncio.timeout(30):
                while not cloud.started:
                    cloud.was_asked.clear()
                    await cloud.was_asked.wait()
            seen = len(cloud.asked)
            async with asyncio.timeout(30):
                while len(cloud.asked) < seen + 5:
                    cloud.was_asked.clear()
                    await cloud.was_asked.wait()
    assert (written, cloud.started) == (0, ["e1"])


async def test_without_being_told_to_nothing_is_acknowledged() -> None:
    async with AzureServer().running() as cloud, NodeServer().running() as node:
        cloud.schedule("e1")
        async with agent_running(Azure(lambda: NOW, cloud.url), node.build()):
            await node.until(lambda: node.text is not None)
            seen = len(cloud.asked)
            async with asyncio.timeout(30):
                while len(cloud.asked) < seen + 5:
                    cloud.was_asked.clear()
                    await cloud.was_asked.wait()
    assert cloud.started == []


async def test_a_quiet_cloud_costs_the_api_server_one_question() -> None:
    """Thousands of agents ask their own machine every few seconds, not the API server."""
    async with (
        AwsServer().running() as cloud,
        NodeServer().running() as node,
        agent_running(Aws(cloud.url), node.build()),
    ):
        async with asyncio.timeout(30):
            while len(cloud.asked) < 50:
                cloud.was_asked.clear()
                await cloud.was_asked.wait()
    assert len(node.asked) == 1


def test_our_own_count_of_seconds_is_no_new_notice_and_another_moment_of_the_cloud_is() -> None:
    counted = CloudNotice("preempt", NOW, is_exact=False)
    assert is_repeated(counted, counted._replace(deadline=NOW + 1))
    assert not is_repeated(counted, counted._replace(action="stop"))
    exact = CloudNotice("terminate", NOW)
    assert is_repeated(exact, exact)
    assert not is_repeated(exact, exact._replace(deadline=NOW + 1))
    assert not is_repeated(exact, counted)


# The Node -------------------------------------------------------------------------------------------------------------


async def test_a_node_that_is_not_there_or_not_read_is_said_so() -> None:
    async with NodeServer().running() as node:
        with pytest.raises(NotFound, match="no such node"):
            await node.build("n2").read()
        node.faults = [None]
        with pytest.raises(ServerFailed, match=r"127\.0\.0\.1"):
            await node.build().read()
        view = await node.build().read()
        node.version = 7
        with pytest.raises(Conflict):
            await node.build().annotate(view, "2m")


async def test_the_account_is_told_by_its_token() -> None:
    async with NodeServer().running() as node:
        await node.build(token="secret").read()
    assert node.asked[0].headers["authorization"] == "Bearer secret"


def test_a_proxy_is_refused_at_once() -> None:
    login = Login(place="test", cluster=ClusterEntry(server="https://api.example", proxy_url="http://proxy:3128"))
    with pytest.raises(InputError, match="proxy"):
        OwnNode(Credentials(login, {}), "n1")


async def test_the_cloud_is_found_as_soon_as_the_node_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.app.agent.agent.CLOUD_SECONDS", 0.01)
    async with NodeServer(provider_id="").running() as node:
        node.faults = [answer(503), None]
        looking = asyncio.create_task(find_cloud(node.build(), PORTS))
        await node.until(lambda: len(node.asked) > 4)
        node.provider_id = "azure:///x"
        async with asyncio.timeout(30):
            assert await looking == "azure"


# Pauses ---------------------------------------------------------------------------------------------------------------


async def test_pauses_double_up_to_a_bound_and_chance_shortens_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("asyncio.sleep", sleep)
    retries = Retries(lambda: 1.0, "it fails")
    for _ in range(20):
        await retries.wait(InputError("again"))
    assert slept[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(slept) == LAST_SECONDS
    assert slept[-1] == LAST_SECONDS
    retries.succeed()
    await retries.wait(InputError("again"))
    assert slept[-1] == 0.5
    lucky = Retries(lambda: 0.0, "it fails")
    await lucky.wait(InputError("again"))
    assert slept[-1] == 0.25


async def test_a_failure_that_repeats_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    retries = Retries(lambda: 0.0, "it fails")
    for problem in ("one", "one", "two", "two", "one"):
        await retries.wait(InputError(problem))
    assert [record.__dict__["error"] for record in caplog.records] == ["one", "two", "one"]
