"""Hostile documents written to the embedded server and captured into snapshots: refused or kept, never half written.

A failure names its seed and case: `HOSTILE_SEED=7 pytest tests/hostile/test_stores.py` plays it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from conftest import FIGURE
from hostile.grammar import SEED, TENANTS, Grammar, read_back
from hostile.neighbourhood import a_canned_kube
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS, NAMESPACES
from wukong.api.resources import Key
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.capture import capture, capture_documents
from wukong.embedded.store import Server
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody, PatchType

WRITES, CAPTURED = 8_000, 4_000
SERVED = [kind for kind in KINDS if kind.origin != "internal" and kind.resource.kind != "CustomResourceDefinition"]
PATCHES: tuple[PatchType, ...] = ("merge", "strategic", "apply", "json")


def a_server() -> Server:
    server = Server(VirtualClock())
    for name in TENANTS:
        server.create(NAMESPACES, {"metadata": {"name": name}})
    return server


def write_one(server: Server, kind: Kind, document: Any, grammar: Grammar, number: int) -> None:
    """Create it, change it in one of four ways, and delete it."""
    namespace = TENANTS[0] if kind.resource.namespaced else ""
    if isinstance(document.get("metadata"), dict):
        document["metadata"] |= {"namespace": namespace} if namespace else {}
        document["metadata"].pop("resourceVersion", None)
    try:
        created = server.create(kind.resource, document, namespace)
    except ClusterError:
        return
    key = Key(namespace, created["metadata"]["name"])
    before = server.get(kind.resource, key)
    patch_type = grammar.rng.choice(PATCHES)
    changed = read_back(grammar.build_document(kind, key.name))
    if isinstance(changed, dict):
        body = draw_operations(grammar) if patch_type == "json" else changed
        try:
            server.patch(kind.resource, key, PatchBody(patch_type, body, force=patch_type == "apply"))
        except ClusterError:
            assert server.get(kind.resource, key) is before, "refused, and half written"
    for finalizers_left in range(2):
        try:
            server.patch(kind.resource, key, PatchBody("merge", {"metadata": {"finalizers": None}}))
            server.delete(kind.resource, key, DeleteOptions(grace_seconds=0))
        except ClusterError:
            assert finalizers_left or kind.resource.kind in ("Namespace", "PriorityClass"), "it cannot be deleted"
            return


def draw_operations(grammar: Grammar) -> Any:
    rng = grammar.rng
    paths = (
        "/spec",
        "/metadata",
        "/metadata/name",
        "/spec/containers/0",
        "/status/x/y",
        "",
        "/",
        "//",
        "/spec/-",
        "~",
        None,
    )
    return [
        {
            "op": rng.choice(("add", "remove", "replace", "test", "move", "copy", "", None)),
            "path": rng.choice(paths),
            "value": 1,
        }
        for _ in range(rng.randrange(3))
    ]


@pytest.mark.slow
def test_whatever_is_written_is_taken_whole_or_refused(record_property: Callable[[str, object], None]) -> None:
    grammar, server = Grammar(random.Random(SEED)), a_server()
    count = 0
    for number in range(WRITES):
        kind = grammar.rng.choice(SERVED)
        document = read_back(grammar.build_document(kind, f"evil-{number}"))
        if not isinstance(document, dict):
            continue
        count += 1
        version = server.database.version
        try:
            write_one(server, kind, document, grammar, number)
        except Exception as error:
            case = f"HOSTILE_SEED={SEED} case {number}: {kind.group_kind} {document!r:.2000}"
            raise AssertionError(f"{case}\n{type(error).__name__}: {error}") from error
        assert server.database.version >= version
    record_property(FIGURE, f"hostile writes: {count} of seed {SEED}")


def draw_texts(grammar: Grammar, kind: Kind) -> Iterator[bytes]:
    """Objects that are JSON, however deep: one that is not would break the whole list."""
    for _ in range(25):
        text = grammar.write_json(grammar.build_document(kind), 0.0)
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        except RecursionError:
            pass
        yield text


@pytest.mark.slow
async def test_whatever_is_captured_makes_a_snapshot_that_can_be_read(
    record_property: Callable[[str, object], None],
) -> None:
    grammar = Grammar(random.Random(SEED))
    kube, http = a_canned_kube()
    kinds = [kind for kind in KINDS if kind.snapshot is not None]
    kept = unreadable = 0
    notes: list[str] = []
    for number in range(CAPTURED // (25 * len(kinds)) + 1):
        texts = {kind.resource.path(): list(draw_texts(grammar, kind)) for kind in kinds}

        async def send(
            method: str, path: str, body: object = None, texts: dict[str, list[bytes]] = texts, **_: Any
        ) -> bytes:
            return b'{"metadata":{"resourceVersion":"7"},"items":[' + b",".join(texts[path]) + b"]}"

        http.send = send  # type: ignore[method-assign]
        try:
            documents: list[Document] = [document async for document in capture_documents(kube, note=notes.append)]
            kept += len(documents)
            unreadable += sum(map(len, texts.values())) - len(documents)
            msgspec.json.encode(documents)
            assert len(anonymize_documents(documents)) == len(documents)
            await capture(kube, note=notes.append)
        except ClusterError:  # one text breaks the whole list
            continue
        except Exception as error:
            raise AssertionError(f"HOSTILE_SEED={SEED} round {number}: {type(error).__name__}: {error}") from error
    assert kept > unreadable > 0
    assert all(len(text) < 2000 for text in notes)
    record_property(FIGURE, f"hostile snapshots: {kept} objects kept, {unreadable} left out, of seed {SEED}")
