"""Answers that no API server should give: each ends in an object or in one of our errors, and the loop goes on.

A failure names its seed and case: `HOSTILE_SEED=7 pytest tests/hostile/test_answers.py` plays it again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from conftest import FIGURE
from hostile.answers import Answer, SickHttp, draw_answer, draw_line, raise_if_error
from hostile.grammar import SEED, Grammar
from hostile.neighbourhood import GOOD_NAMES, KIND_LIST, a_canned_kube, judge_name, list_good_objects
from runtime.virtual import LoopClock, play
from scripted_api_server import served, streams
from wukong.api.kinds import KINDS, PLACEMENT_POLICIES, POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES, group_kind_of
from wukong.api.resources import Key
from wukong.app.assemble import assemble
from wukong.app.component import Context
from wukong.app.components.extender import EXTENDER
from wukong.app.components.load import LOAD
from wukong.app.components.policy import POLICY
from wukong.app.live import build_loop
from wukong.app.run_config import RunConfig
from wukong.cluster.kube import Kube
from wukong.errors import ClusterError
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document, PatchBody
from wukong.runtime import Metrics
from wukong.state import State

ANSWERS = 12_000
SERVED = 400  # of them through a socket
SICK_SECONDS = 1800.0
GOOD: dict[str, bytes] = {}
for subject in list_good_objects():
    GOOD.setdefault(
        group_kind_of(subject), msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": [subject]})
    )


async def ask(kube: Kube, grammar: Grammar, verb: str) -> Any:
    """One request of this kind, whatever it is answered."""
    kind = grammar.rng.choice(KIND_LIST)
    read: Any = grammar.rng.choice((kind.struct, dict, msgspec.Raw))
    key = Key("evil" if kind.resource.namespaced else "", "x")
    match verb:
        case "get":
            return await kube.get(kind.resource, key, read)
        case "list":
            return await kube.list(kind.resource, read, limit=5)
        case "create":
            return await kube.create(kind.resource, {"metadata": {"name": "x"}}, key.namespace)
        case "patch":
            return await kube.patch(kind.resource, key, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
        case "delete":
            return await kube.delete(kind.resource, key)
        case "version":
            return await kube.version()
        case _:
            read = kind.struct if read is msgspec.Raw else read
            return [event async for event in kube.watch(kind.resource, read, resource_version="1")]


@pytest.mark.slow
async def test_every_answer_is_an_object_or_one_of_our_errors(record_property: Callable[[str, object], None]) -> None:
    grammar = Grammar(random.Random(SEED))
    kube, http = a_canned_kube()
    verbs = ("get", "list", "list", "create", "patch", "delete", "version", "watch", "watch")
    errors = 0
    for number in range(ANSWERS):
        verb = grammar.rng.choice(verbs)
        answer = draw_answer(grammar, GOOD[grammar.rng.choice([*GOOD])])
        lines = [draw_line(grammar, []) for _ in range(3)] if verb == "watch" else []
        try:
            try:
                http.answer, http.lines = raise_if_error(answer, verb in ("create", "patch", "delete")), lines
            except ClusterError as error:
                check_error(error)
                http.answer, http.lines = error, lines
            await ask(kube, grammar, verb)
        except ClusterError as error:
            check_error(error)
            errors += 1
        except Exception as error:
            case = f"HOSTILE_SEED={SEED} case {number}: {verb} {answer!r:.1500} {lines!r:.1500}"
            raise AssertionError(f"{case}\n{type(error).__name__}: {error}") from error
    record_property(FIGURE, f"hostile answers: {ANSWERS} of seed {SEED}, {errors} of them ended in an error")
    assert ANSWERS // 4 < errors < ANSWERS


def check_error(error: ClusterError) -> None:
    retry_after = getattr(error, "retry_after", None)
    assert retry_after is None or 0 <= retry_after <= 60
    assert len(str(error)) < 4000


@pytest.mark.slow
async def test_answers_through_a_socket_end_alike() -> None:
    from aiohttp import web

    grammar = Grammar(random.Random(SEED))

    def serve(answer: Answer) -> Any:
        async def respond(request: web.Request) -> web.StreamResponse:
            headers = {"Retry-After": answer.retry_after} if answer.retry_after.isprintable() else {}
            return web.Response(body=answer.body, status=answer.code, headers=headers)

        return respond

    for number in range(SERVED):
        verb = grammar.rng.choice(("get", "list", "create", "patch", "watch"))
        answer = draw_answer(grammar, GOOD[grammar.rng.choice([*GOOD])])
        lines = [draw_line(grammar, []) + b"\n" for _ in range(3)]
        response = streams(*lines, cut=grammar.rng.random() < 0.3) if verb == "watch" else serve(answer)
        async with served(response, response) as (kube, _):
            try:
                await ask(kube, grammar, verb)
            except ClusterError as error:
                check_error(error)
            except Exception as error:
                case = f"HOSTILE_SEED={SEED} case {number}: {verb} {answer!r:.1500} {lines!r:.1500}"
                raise AssertionError(f"{case}\n{type(error).__name__}: {error}") from error


@pytest.mark.slow
def test_wukong_run_outlives_a_sick_api_server(
    record_property: Callable[[str, object], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Half an hour of nonsense on every list, watch, lease and write; then it knows and does what is right again."""
    caplog.set_level(logging.ERROR)
    random.seed(SEED)  # of how long watches and leases wait before they try again
    http = SickHttp(random.Random(SEED))
    kube, _ = a_canned_kube()
    kube._http = http  # type: ignore[assignment]

    async def run() -> None:
        clock, metrics = LoopClock(), Metrics()
        config = RunConfig(components=(EXTENDER, LOAD, POLICY))
        context = Context(State(), metrics, clock, BUILT_IN, {})
        loop = build_loop(kube, clock, metrics, assemble(config.components, context), config, "us")
        stop = asyncio.Event()
        running = asyncio.ensure_future(loop.run(stop))
        await asyncio.sleep(30.0)
        assert loop.is_synced
        assert loop.is_leading
        http.is_sick = True
        await asyncio.sleep(SICK_SECONDS)
        assert not running.done(), f"HOSTILE_SEED={SEED}: {running.exception()!r}"
        http.recover()
        await asyncio.sleep(600.0)
        assert not running.done(), f"HOSTILE_SEED={SEED}: {running.exception()!r}"
        assert loop.is_leading
        assert {key.name for key in loop.state.objects["Node"]} == set(GOOD_NAMES), f"HOSTILE_SEED={SEED}"
        stop.set()
        await running

    play(run())
    for path, body in http.writes:
        judge(path, body)
    assert not [record for record in caplog.records if record.exc_info], "a traceback in the log"
    figure = f"a sick API server: {http.answers} answers and lines in {SICK_SECONDS / 60:g} virtual minutes, no exit"
    record_property(FIGURE, figure)


def judge(path: str, body: Document) -> None:
    """Only leases, statuses of policies, budgets and classes of ours, and labels of usage and of what is free."""
    if "/leases" in path:
        return
    for resource in (POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES):
        _, found, name = path.partition(f"/{resource.plural}")
        if found:
            judge_name(resource, name.removeprefix("/") or body["metadata"]["name"])
            return
    if path.endswith("/eviction"):
        assert "/pods/good-" not in path
        return
    if path.endswith("/status"):
        assert PLACEMENT_POLICIES.plural in path, path
        assert set(body) == {"metadata", "status"}
        return
    assert path.startswith(KINDS["Node"].resource.path()), path
    ours = ("usage.novasphere.dev/", "free.novasphere.dev/")
    assert all(name.startswith(ours) for name in body["metadata"]["labels"])
