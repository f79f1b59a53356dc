"""The extender at work: what it counts and tells."""

from __future__ import annotations

import logging
import ssl
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from aiohttp import ClientError, ClientSession

from builders import a_node, a_pod, a_usage, measure
from policies import spot, steady
from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.app.component import Context
from wukong.app.components.extender import ExtenderOptions
from wukong.app.components.extender.server import _MOST_WAITING, CountingExtender, ExtenderServer
from wukong.app.install.certificates import issue
from wukong.app.rules import load_rules
from wukong.placement.slices import finish
from wukong.replies.extender.verbs import Extender
from wukong.runtime import Loop
from wukong.runtime.metrics import Metrics
from wukong.state import State


class Hand:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


def test_a_stale_mirror_is_shown_and_its_refusals_are_counted() -> None:
    state, clock, metrics = State(), Hand(), Metrics()
    state.replace("Node", [spot("s"), steady("d")])
    extender = Extender(state, node_staleness=lambda now: now - 1000.0)
    counting = CountingExtender(extender, metrics, clock)
    figures = metrics.registry.get_sample_value
    assert figures("wukong_extender_stale_mirror") == 0
    clock.time += 163
    fleet = extender.fleet(clock.now())
    finish(counting.filter_in_slices(a_pod(), fleet, np.arange(fleet.size, dtype=np.intp), clock.now()))
    refused = {"reason": "stale-mirror", "mode": "enforce"}
    assert figures("wukong_extender_stale_mirror") == 1
    assert figures("wukong_extender_nodes_refused_total", refused) == 1
    assert figures("wukong_extender_fallbacks_total") == 1


def test_usage_grows_old_and_stale_though_no_scheduler_asks() -> None:
    state, clock, metrics = State(), Hand(), Metrics()
    state.replace("Node", [a_node("quiet"), a_node("lost")])
    measure(state, a_usage("quiet", 1000.0, cpu=10), a_usage("lost", 990.0, cpu=10))
    CountingExtender(Extender(state), metrics, clock)
    figures = metrics.registry.get_sample_value
    assert (figures("wukong_usage_stale_nodes"), figures("wukong_usage_age_seconds")) == (0, 10)
    clock.time += 175
    assert (figures("wukong_usage_stale_nodes"), figures("wukong_usage_age_seconds")) == (1, 185)


def test_nodes_nobody_heard_of_failing_rules_and_lost_events_are_counted() -> None:
    state, clock, metrics = State(), Hand(), Metrics()
    state.replace("Node", [a_node("a"), a_node("b")])
    extender = Extender(state)
    counting = CountingExtender(extender, metrics, clock)
    figures = metrics.registry.get_sample_value
    fleet, rows = extender.fleet(clock.now()), np.array([0, -1, -1], dtype=np.intp)
    extender.judge.faults["slow"] = "ZeroDivisionError"
    finish(counting.filter_in_slices(a_pod(), fleet, rows, clock.now()))
    extender.judge.faults["slow"] = "ZeroDivisionError"
    finish(counting.prioritize_in_slices(a_pod(), fleet, np.arange(2, dtype=np.intp), clock.now()))
    finish(counting.prioritize_in_slices(a_pod(), fleet, np.arange(2, dtype=np.intp), clock.now()))
    assert figures("wukong_extender_unknown_nodes_total") == 2
    assert figures("wukong_rule_failures_total", {"rule": "slow"}) == 2, "each is told once"
    notes = [Note(PODS, Key("default", f"web-{number}"), "Refused", "why") for number in range(_MOST_WAITING + 3)]
    counting.notes.clear()
    counting.has_notes.clear()
    counting._keep(tuple(notes[:_MOST_WAITING]))
    assert counting.has_notes.is_set()
    assert figures("wukong_extender_events_dropped_total") == 0
    counting._keep(tuple(notes[_MOST_WAITING:]))
    assert figures("wukong_extender_events_dropped_total") == 3
    assert [*counting.notes] == notes[3:]


def test_what_is_asked_is_handed_on_and_only_counted() -> None:
    state, clock = State(), Hand()
    state.replace("Node", [a_node("a"), a_node("b")])
    extender = Extender(state)
    counting = CountingExtender(extender, Metrics(), clock)
    assert finish(counting.fleet_in_slices(clock.now())).names == extender.fleet(clock.now()).names
    assert list(counting.fleet_of(["b"], clock.now()).names) == list(extender.fleet_of(["b"], clock.now()).names)
    candidates = {"a": [a_pod("victim", node="a")], "b": []}
    expected = extender.preempt(a_pod(), candidates, clock.now())
    assert finish(counting.preempt_in_slices(a_pod(), candidates, clock.now())) == expected
    assert expected


class Beside:
    """As much of a loop as the server asks for."""

    class mirror:  # noqa: N801
        class ages:  # noqa: N801
            @staticmethod
            def staleness_of(kind: str, now: float) -> float:
                return 0.0

    performer = None
    is_synced = True


@pytest.mark.parametrize("is_plain", [True, False])
async def test_the_server_speaks_tls_unless_it_is_told_not_to(
    is_plain: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    issued = issue("wukong", ["127.0.0.1"], datetime.now(UTC), 10)
    files = {"cert": issued.server.certificate, "key": issued.server.key, "client_ca": issued.authority}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths: dict[str, Any] = {} if is_plain else {name: str(tmp_path / name) for name in files}
    options, metrics = ExtenderOptions(address="127.0.0.1:0", plain_http=is_plain, **paths), Metrics()
    context = Context(State(), metrics, Hand(), load_rules(), {})
    server = ExtenderServer(lambda staleness: Extender(context.state), options, context)
    async with AsyncExitStack() as stack:
        beside = await server.start(stack, cast(Loop, Beside()))
        beside.close()
        (port,) = [record.__dict__["port"] for record in caplog.records if "port" in record.__dict__]
        client = ssl.create_default_context(cadata=issued.authority.decode())
        (tmp_path / "client").write_bytes(issued.client.certificate + issued.client.key)
        client.load_cert_chain(tmp_path / "client")
        scheme = "http" if is_plain else "https"
        async with ClientSession() as session:
            async with session.get(f"{scheme}://127.0.0.1:{port}/healthz", ssl=client) as response:
                assert response.status == 200
            other = "https" if is_plain else "http"
            with pytest.raises(ClientError):
                await session.get(f"{other}://127.0.0.1:{port}/healthz", ssl=client)
    has_expiry = "wukong_certificate_expiry_timestamp_seconds{" in metrics.text().decode()
    assert has_expiry != is_plain
