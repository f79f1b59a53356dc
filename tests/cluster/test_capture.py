"""A snapshot is whole or there is none: what may be missing, what may not, and what happens to the file."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import msgspec
import pytest
from click.testing import CliRunner

from wukong.api.kinds import DEPLOYMENTS, KINDS, NODES, PLACEMENT_POLICIES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Resource
from wukong.api.unreadable import Unreadable
from wukong.cli.verbs.snapshot import command as snapshot
from wukong.cluster.capture import _note_unreadable, capture, capture_documents
from wukong.errors import ClusterError, Denied, NotFound, ServerFailed
from wukong.ports import Document, Page

FORBIDDEN = Denied("pods is forbidden: User u cannot list it", reason="Forbidden", code=403)
EXPIRED = Denied("Unauthorized", reason="Unauthorized", code=401)
PLUGIN = Denied("kubeconfig: aws-iam ended with code 255: no message")
FAILED = ServerFailed("etcd is not there", code=500)
MISSING = NotFound("the server could not find the requested resource", reason="NotFound", code=404)


class Pages:
    """A cluster with two pages of two objects of each kind; `failures` by kind and number of the page."""

    def __init__(self, failures: dict[tuple[Resource, int], ClusterError] | None = None) -> None:
        self.failures = failures or {}

    async def list(self, resource: Resource, read: type[Any], *, limit: int, token: str = "", **_: object) -> Page[Any]:
        number = int(token or 1)
        if (resource, number) in self.failures:
            raise self.failures[resource, number]
        names = [f"{resource.kind.lower()}-{number}-{letter}" for letter in "ab"]
        items = [{"metadata": {"name": name, "namespace": "shop"}} for name in names]
        return Page(msgspec.convert(items, list[read]), "1", "2" if number == 1 else "")  # type: ignore[valid-type]


async def take(cluster: Any, notes: list[str]) -> Tally[str]:
    return Tally([document["kind"] async for document in capture_documents(cluster, note=notes.append)])


async def take_structs(cluster: Any, notes: list[str]) -> Tally[str]:
    return Tally(subject.kind for subject in (await capture(cluster, note=notes.append)).everything())


Take = Callable[[Any, list[str]], Any]
BOTH: list[Take] = [take, take_structs]


@pytest.mark.parametrize("take", BOTH)
def test_all_pages_of_all_kinds_are_taken(take: Take) -> None:
    notes: list[str] = []
    numbers = asyncio.run(take(Pages(), notes))
    assert (numbers["Node"], numbers["Pod"], numbers["Deployment"]) == (4, 4, 4)
    assert notes == []


async def take_steps(cluster: Any, steps: list[tuple[int, int]]) -> list[str]:
    add = lambda done, total: steps.append((done, total))  # noqa: E731
    return list(dict.fromkeys([document["kind"] async for document in capture_documents(cluster, add)]))


async def take_steps_of_structs(cluster: Any, steps: list[tuple[int, int]]) -> list[str]:
    objects = await capture(cluster, lambda done, total: steps.append((done, total)))
    return list(dict.fromkeys(subject.kind for subject in objects.everything()))


@pytest.mark.parametrize("take", [take_steps, take_steps_of_structs])
def test_each_kind_that_is_through_is_a_step_of_the_progress(take: Callable[..., Any]) -> None:
    steps: list[tuple[int, int]] = []
    kinds = asyncio.run(take(Pages(), steps))
    assert steps == [(number, len(kinds)) for number in range(1, len(kinds) + 1)]


@pytest.mark.parametrize("take", BOTH)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("resource", [NODES, PODS])
@pytest.mark.parametrize("error", [FORBIDDEN, EXPIRED, PLUGIN, FAILED, MISSING])
def test_without_all_nodes_and_pods_there_is_no_snapshot(
    take: Take, number: int, resource: Resource, error: ClusterError
) -> None:
    with pytest.raises(type(error), match=str(error)):
        asyncio.run(take(Pages({(resource, number): error}), []))


@pytest.mark.parametrize("take", BOTH)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("resource", [DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PLACEMENT_POLICIES])
@pytest.mark.parametrize("error", [EXPIRED, PLUGIN, FAILED])
def test_a_refused_login_is_about_everything(take: Take, number: int, resource: Resource, error: ClusterError) -> None:
    with pytest.raises(type(error), match=str(error)):
        asyncio.run(take(Pages({(resource, number): error}), []))


@pytest.mark.parametrize("take", BOTH)
@pytest.mark.parametrize("number", [1, 2])
def test_another_kind_that_may_not_be_listed_is_left_out_whole_and_said(take: Take, number: int) -> None:
    notes: list[str] = []
    numbers = asyncio.run(take(Pages({(DEPLOYMENTS, number): FORBIDDEN}), notes))
    assert (numbers["Deployment"], numbers["StatefulSet"]) == (0, 4)
    assert notes == [f"deployments were left out: {FORBIDDEN}"]


@pytest.mark.parametrize("take", BOTH)
def test_our_own_kinds_need_not_be_installed(take: Take) -> None:
    notes: list[str] = []
    numbers = asyncio.run(take(Pages({(PLACEMENT_POLICIES, 1): MISSING, (DEPLOYMENTS, 1): MISSING}), notes))
    assert (numbers["PlacementPolicy"], numbers["Deployment"]) == (0, 0)
    assert notes == [f"deployments were left out: {MISSING}"]


class OddPages(Pages):
    """Two of the pods on the first page cannot be read, nor can a node that has no name."""

    async def list(self, resource: Resource, read: type[Any], *, limit: int, token: str = "", **_: object) -> Page[Any]:
        page = await super().list(resource, read, limit=limit, token=token)
        if resource == PODS and not token:
            metadata = ObjectMeta(name="odd", namespace="shop")
            page.unreadable.append(Unreadable(metadata=metadata, problem="$.spec: odd."))
        if resource in (PODS, NODES) and not token:
            page.unreadable.append(Unreadable(problem="$: odder."))
        return page


@pytest.mark.parametrize("take", BOTH)
def test_what_cannot_be_read_is_left_out_counted_and_the_first_is_told(take: Take) -> None:
    notes: list[str] = []
    numbers = asyncio.run(take(OddPages(), notes))
    assert (numbers["Pod"], numbers["Node"]) == (4, 4)
    assert notes == [
        "1 nodes could not be read and were left out. The first is without a name: $: odder.",
        "2 pods could not be read and were left out. The first is shop/odd: $.spec: odd.",
    ]


def test_a_number_beyond_64_bits_is_told_and_the_others_are_taken() -> None:
    class Huge(Pages):
        async def list(self, resource: Resource, read: type[Any], **options: Any) -> Page[Any]:
            page = await super().list(resource, read, **options)
            if resource == PODS and not options["token"]:
                page.items[0].spec.priority = 2**70
            return page

    notes: list[str] = []
    numbers = asyncio.run(take_structs(Huge(), notes))
    assert numbers["Pod"] == 3
    assert notes == [
        "1 pods could not be read and were left out. The first is shop/pod-1-a: a number is larger than 64 bits."
    ]


# ---- the verb


class Answers:
    """An API server: what it answers by plural and page; else one empty page."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], tuple[int, Document]] = {}

    def __call__(self, path: str) -> tuple[int, Document]:
        url = urlparse(path)
        page = int(parse_qs(url.query).get("continue", ["1"])[0])
        empty: tuple[int, Document] = (200, {"metadata": {"resourceVersion": "1"}, "items": []})
        return self.answers.get((url.path.rsplit("/", 1)[-1], page), self.answers.get(("", page), empty))


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answers(self.path)
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    (tmp_path / "kubeconfig").write_text(kubeconfig(f"http://127.0.0.1:{server.server_port}", {"token": "t"}))
    yield answers
    server.shutdown()
    thread.join()
    server.server_close()


def kubeconfig(server: str, user: Document) -> str:
    return json.dumps(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user}],
        }
    )


def a_page(*names: str, token: str = "") -> tuple[int, Document]:
    items = [{"metadata": {"name": name, "namespace": "shop"}} for name in names]
    return 200, {"metadata": {"resourceVersion": "1", "continue": token}, "items": items}


def refuses(code: int, reason: str) -> tuple[int, Document]:
    return code, {"kind": "Status", "status": "Failure", "reason": reason, "message": f"{reason}!", "code": code}


def write_over(tmp_path: Path) -> tuple[Any, list[str], str]:
    """What `wukong snapshot` says, the names in its folder, and what is in the file, where a good one was."""
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "cluster.json"
    path.write_text("good")
    words = ["--kubeconfig", str(tmp_path / "kubeconfig"), "-o", str(path)]
    result = CliRunner().invoke(snapshot, words, standalone_mode=False)
    return result, sorted(entry.name for entry in path.parent.iterdir()), path.read_text()


def test_an_expired_login_leaves_the_good_file(answers: Answers, tmp_path: Path) -> None:
    answers.answers["", 1] = refuses(401, "Unauthorized")
    result, names, text = write_over(tmp_path)
    assert isinstance(result.exception, Denied), result.output
    assert (names, text) == (["cluster.json"], "good")


def test_half_of_the_pods_leave_the_good_file(answers: Answers, tmp_path: Path) -> None:
    answers.answers["pods", 1] = a_page("a", token="2")
    answers.answers["pods", 2] = refuses(403, "Forbidden")
    result, names, text = write_over(tmp_path)
    assert isinstance(result.exception, Denied), result.output
    assert (names, text) == (["cluster.json"], "good")


def test_a_plugin_that_fails_leaves_the_good_file(answers: Answers, tmp_path: Path) -> None:
    server = json.loads((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never"}
    (tmp_path / "kubeconfig").write_text(kubeconfig(server, {"exec": plugin}))
    result, names, text = write_over(tmp_path)
    assert isinstance(result.exception, Denied), result.output
    assert (names, text) == (["cluster.json"], "good")


def test_what_is_missing_is_said_and_a_whole_snapshot_replaces_the_file(answers: Answers, tmp_path: Path) -> None:
    answers.answers["pods", 1] = a_page("a", token="2")
    answers.answers["pods", 2] = a_page("b")
    answers.answers["deployments", 1] = refuses(403, "Forbidden")
    result, names, text = write_over(tmp_path)
    assert result.exception is None
    assert "deployments were left out: Forbidden!" in result.stderr
    assert names == ["cluster.json"]
    assert [item["metadata"]["name"] for item in json.loads(text)["items"]] == ["a", "b"]


def test_what_cannot_be_read_is_told_in_a_line_however_it_is_called() -> None:
    notes: list[str] = []
    subject = Unreadable(metadata=ObjectMeta(name="x" * 3000, namespace="y" * 3000), problem="z" * 3000)
    _note_unreadable(KINDS["Pod"], [subject], notes.append)
    (note,) = notes
    assert len(note) < 1200
    assert note.startswith("1 pods could not be read and were left out. The first is yyy")
    assert note.endswith("zzz")
