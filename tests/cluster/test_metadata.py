"""What clouds say of a machine's end: asked over HTTP of servers with their quirks, and read."""

from __future__ import annotations

import asyncio
import json

import pytest

from metadata_server import GARBAGE, AlibabaServer, AwsServer, AzureServer, CloudServer, GcpServer, answer
from wukong.cluster.metadata.alibaba import Alibaba, read_termination_time
from wukong.cluster.metadata.aws import Aws, read_action, read_rebalance
from wukong.cluster.metadata.azure import Azure, parse_not_before, read_events
from wukong.cluster.metadata.choice import CLOUDS, build_cloud, recognize_cloud
from wukong.cluster.metadata.cloud import Cloud, CloudNotice, MetadataError
from wukong.cluster.metadata.gcp import Gcp, read_etag, read_preempted
from wukong.cluster.single_exchange import Answer

NOW = 1_800_000_000.0
MOMENT = "2026-11-18T10:02:00Z"
AT = 1_794_996_120.0  # that moment


def now() -> float:
    return NOW


# AWS ------------------------------------------------------------------------------------------------------------------


async def test_aws_has_no_notice_while_both_documents_are_missing() -> None:
    async with AwsServer().running() as server:
        cloud = Aws(server.url)
        assert await cloud.poll() is None
        assert await cloud.poll() is None
    tokens = [path for path in server.paths() if path == "/latest/api/token"]
    assert len(tokens) == 1, "a token is kept"


async def test_aws_says_when_and_how_the_machine_goes() -> None:
    async with AwsServer().running() as server:
        server.interrupt("terminate", MOMENT)
        assert await Aws(server.url).poll() == CloudNotice("terminate", AT)


async def test_a_token_that_is_over_is_renewed_within_the_same_question() -> None:
    async with AwsServer().running() as server:
        cloud = Aws(server.url)
        await cloud.poll()
        server.token = "token-2"
        server.interrupt("stop", MOMENT)
        assert await cloud.poll() == CloudNotice("stop", AT)


async def test_a_server_that_refuses_every_token_is_an_error_and_asked_anew() -> None:
    async with AwsServer().running() as server:
        cloud = Aws(server.url)
        server.faults = [answer(200, b"another"), answer(401)]
        with pytest.raises(MetadataError, match="401"):
            await cloud.poll()
        assert await cloud.poll() is None


async def test_a_rebalance_recommendation_is_soft_and_an_interruption_is_graver() -> None:
    async with AwsServer().running() as server:
        server.rebalance = json.dumps({"noticeTime": MOMENT}).encode()
        cloud = Aws(server.url)
        assert await cloud.poll() == CloudNotice("rebalance", None, is_soft=True)
        server.interrupt("hibernate", MOMENT)
        assert await cloud.poll() == CloudNotice("hibernate", AT)


def test_an_interruption_without_a_time_is_one_all_the_same() -> None:
    assert read_action(Answer(200, {}, b'{"action": "terminate", "time": "soon"}')) == CloudNotice("terminate", None)


@pytest.mark.parametrize("body", [b"{}", b'{"action": "dance", "time": "2026-11-18T10:02:00Z"}', b'{"action": 3}'])
def test_an_action_that_nobody_knows_is_no_notice_but_an_error(body: bytes) -> None:
    with pytest.raises(MetadataError, match="expected one of terminate, stop, hibernate"):
        read_action(Answer(200, {}, body))


def test_a_recommendation_without_its_time_is_an_error() -> None:
    with pytest.raises(MetadataError, match="noticeTime"):
        read_rebalance(Answer(200, {}, b"{}"))


# Google Cloud ---------------------------------------------------------------------------------------------------------


async def test_the_first_question_is_answered_at_once_and_the_next_when_it_changes() -> None:
    async with GcpServer().running() as server:
        cloud = Gcp(now, server.url)
        assert await cloud.poll() is None
        server.was_asked.clear()
        waiting = asyncio.create_task(cloud.poll())
        await server.was_asked.wait()
        assert server.asked[-1].query == {"wait_for_change": "true", "last_etag": "1", "timeout_sec": "60"}
        server.set("TRUE")
        assert await waiting == CloudNotice("preempt", NOW + 30, is_exact=False)


async def test_a_long_question_that_is_cut_is_an_error_and_the_next_is_answered_at_once() -> None:
    async with GcpServer().running() as server:
        cloud = Gcp(now, server.url)
        await cloud.poll()
        server.faults = [None]
        with pytest.raises(MetadataError, match="closed"):
            await cloud.poll()
        server.set("TRUE")
        assert await cloud.poll() is not None
        assert server.asked[-1].query == {}


async def test_what_comes_during_a_cut_is_not_missed() -> None:
    """The etag says what was known last: a change since then is told at once."""
    async with GcpServer().running() as server:
        cloud = Gcp(now, server.url)
        await cloud.poll()
        server.set("TRUE")
        async with asyncio.timeout(30):
            assert await cloud.poll() is not None


async def test_a_long_question_ends_by_the_servers_own_limit() -> None:
    async with GcpServer().running() as server:
        cloud = Gcp(now, server.url, wait_seconds=0)
        await cloud.poll()
        assert await cloud.poll() is None


async def test_a_dead_connection_is_given_up_on_after_the_servers_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.cluster.metadata.gcp._SLACK_SECONDS", 0.5)
    async with GcpServer().running() as server:
        cloud = Gcp(now, server.url, wait_seconds=0)
        await cloud.poll()
        server.faults = [CloudServer.HANG]
        with pytest.raises(MetadataError, match=r"no answer within 0\.5 s"):
            await cloud.poll()
        server.set("TRUE")
        assert await cloud.poll() is not None


def test_an_answer_that_is_not_googles_is_not_believed() -> None:
    with pytest.raises(MetadataError, match="Who answers there"):
        read_preempted(Answer(200, {}, b"TRUE"), NOW)


@pytest.mark.parametrize(("etag", "kept"), [("a1.B_-", "a1.B_-"), ("x&y=1", ""), ("", ""), ("a" * 65, "")])
def test_an_etag_is_put_into_an_address_only_if_it_belongs_there(etag: str, kept: str) -> None:
    assert read_etag(Answer(200, {"etag": etag}, b"")) == kept


# Azure ----------------------------------------------------------------------------------------------------------------


async def test_an_event_of_this_machine_is_a_notice_and_those_of_others_are_not() -> None:
    async with AzureServer().running() as server:
        cloud = Azure(now, server.url)
        server.schedule("e0", Resources=["aks-spot-1234-vmss_4"])
        assert await cloud.poll() is None
        server.schedule("e1", Resources=["other", "AKS-Spot-1234-VMSS_3"])
        assert await cloud.poll() == CloudNotice("preempt", AT, event="e1")
    assert server.paths().count("/metadata/instance/compute") == 1, "a machine's name does not change"


async def test_an_event_is_acknowledged_by_its_id() -> None:
    async with AzureServer().running() as server:
        assert await Azure(now, server.url).acknowledge(CloudNotice("preempt", AT, event="e7")) is True
        server.faults = [answer(400, b"no such event")]
        with pytest.raises(MetadataError, match="no such event"):
            await Azure(now, server.url).acknowledge(CloudNotice("preempt", AT, event="e8"))
    assert server.started == ["e7"]


def events(*them: object) -> Answer:
    return Answer(200, {}, json.dumps({"Events": them}).encode())


def event(**more: object) -> dict[str, object]:
    return {"EventId": "e", "EventType": "Preempt", "Resources": ["me"], "NotBefore": "", **more}


def test_an_event_that_has_begun_has_its_deadline_now() -> None:
    assert read_events(events(event()), "me", NOW) == CloudNotice("preempt", NOW, is_exact=False, event="e")


@pytest.mark.parametrize("kind", ["Freeze", "Reboot", "Redeploy", None, 7])
def test_a_machine_that_comes_back_has_no_notice(kind: object) -> None:
    assert read_events(events(event(EventType=kind)), "me", NOW) is None


def test_the_soonest_of_several_events_counts_and_unreadable_ones_hide_none() -> None:
    later = event(EventId="late", NotBefore="Wed, 18 Nov 2026 10:12:00 GMT")
    sooner = event(EventId="soon", EventType="Terminate", NotBefore="Wed, 18 Nov 2026 10:02:00 GMT")
    found = read_events(events(None, 3, {"EventType": "Preempt", "Resources": "me"}, later, sooner), "me", NOW)
    assert found == CloudNotice("terminate", AT, event="soon")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Wed, 18 Nov 2026 10:02:00 GMT", AT),
        ("18 Nov 2026 10:02:00 GMT", AT),
        (MOMENT, AT),
        ("", None),
        ("Wed, 32 Nov 2026 10:02:00 GMT", None),
        ("Wed, 18 Nov 2026 10:99:00 GMT", None),
        ("Mi, 18 Nov 2026 10:02:00 GMT", None),
        ("Wed, 18 Foo 2026 10:02:00 GMT", None),
        ("soon", None),
    ],
)
def test_azure_writes_dates_in_its_own_way(text: str, moment: float | None) -> None:
    assert parse_not_before(text) == moment


async def test_without_a_name_of_the_machine_no_event_is_judged() -> None:
    async with AzureServer().running() as server:
        server.name = ""
        server.schedule(Resources=[""])
        with pytest.raises(MetadataError, match="the name of this machine"):
            await Azure(now, server.url).poll()


# Alibaba Cloud --------------------------------------------------------------------------------------------------------


async def test_alibaba_says_when_the_machine_is_released() -> None:
    async with AlibabaServer().running() as server:
        cloud = Alibaba(server.url)
        assert await cloud.poll() is None
        server.action = f"{MOMENT}\n".encode()
        assert await cloud.poll() == CloudNotice("terminate", AT)


def test_a_release_without_a_time_is_an_error() -> None:
    with pytest.raises(MetadataError, match="expected a time"):
        read_termination_time(Answer(200, {}, b"tomorrow"))


# All of them ----------------------------------------------------------------------------------------------------------

SERVERS: dict[str, type[CloudServer]] = {
    "aws": AwsServer,
    "gcp": GcpServer,
    "azure": AzureServer,
    "alibaba": AlibabaServer,
}


def build(name: str, server: CloudServer) -> Cloud:
    return build_cloud(name, now, server.url + "/", "me")


@pytest.mark.parametrize("name", CLOUDS)
async def test_whatever_a_metadata_server_answers_is_an_error_and_never_the_end_of_a_notice(name: str) -> None:
    """None would withdraw a notice that stands: only the cloud's word may."""
    wrong = []
    async with SERVERS[name]().running() as server:
        for what, data in GARBAGE.items():
            cloud = build(name, server)
            await cloud.poll()  # so that tokens and names are known
            server.faults = [data, data]
            try:
                wrong.append(f"{what}: taken for {await cloud.poll()}")
            except MetadataError as error:
                if len(str(error)) >= 400 or not str(error).isprintable():
                    wrong.append(f"{what}: said as {error}")
            server.faults = []
            assert await cloud.poll() is None, f"after {what}"
    assert wrong == []


@pytest.mark.parametrize("name", CLOUDS)
async def test_a_server_that_is_not_there_is_an_error(name: str) -> None:
    with pytest.raises(MetadataError, match=r"http://127\.0\.0\.1:1"):
        await build_cloud(name, now, "http://127.0.0.1:1", "me").poll()


async def test_a_server_that_never_answers_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.cluster.metadata.cloud.ask.__kwdefaults__", {"seconds": 0.05})
    async with AwsServer().running() as server:
        server.faults = [CloudServer.HANG]
        with pytest.raises(MetadataError, match=r"no answer within 0\.05 s"):
            await Aws(server.url).poll()


@pytest.mark.parametrize(
    ("provider_id", "cloud"),
    [
        ("aws:///eu-west-1a/i-0123456789abcdef0", "aws"),
        ("gce://project/europe-west1-b/node-1", "gcp"),
        ("azure:///subscriptions/x/resourceGroups/y/providers/Microsoft.Compute/virtualMachineScaleSets/z", "azure"),
        ("alicloud://cn-hangzhou.i-bp1abc", "alibaba"),
        ("cn-hangzhou.i-bp1abc", "alibaba"),
        ("kind://docker/kind/worker", ""),
        ("", ""),
    ],
)
def test_a_cloud_is_recognized_by_the_id_that_its_controller_writes(provider_id: str, cloud: str) -> None:
    assert recognize_cloud(provider_id) == cloud
