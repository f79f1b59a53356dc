"""What the tests of faults need: a line that can be cut, a restless writer, and etcd's own memory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import yaml

from testbed.client import ApiError, Client
from testbed.control_plane import ControlPlane

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITE_SECONDS = 0.02
FIRST_KEY = base64.b64encode(b"/registry/configmaps/default/").decode()
END_KEY = base64.b64encode(b"/registry/configmaps/default0").decode()


class Line:
    """A TCP proxy in front of an API server. TLS passes through it untouched."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.is_down = False  # refuses whoever comes
        self.is_deaf = False  # requests pass, answers do not
        self.opened = 0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break every connection there is, in the middle of whatever it says."""
        for end in list(self._open):
            end.transport.abort()

    def hold(self) -> None:
        """Pass nothing on any more, in either direction. Connections stay open, and new ones are accepted."""
        self._flowing.clear()

    def release(self) -> None:
        """Pass on what was held, and whatever comes."""
        self._flowing.set()

    @contextlib.asynccontextmanager
    async def kubeconfig(self, original: Path, folder: Path) -> AsyncIterator[Path]:
        """A kubeconfig that leads through this line, while it is served."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        config = yaml.safe_load(original.read_text())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        path = folder / "through-the-line.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        try:
            yield path
        finally:
            server.close()
            self.release()
            self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            answers, requests = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            self._open.discard(writer)
            writer.transport.abort()
            return
        self.opened += 1
        self._open.add(requests)
        await asyncio.gather(
            self._carry(reader, requests, is_answer=False), self._carry(answers, writer, is_answer=True)
        )
        self._open -= {writer, requests}

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(1 << 16):
                await self._flowing.wait()
                if not (is_answer and self.is_deaf):
                    target.write(piece)
                    await target.drain()
        target.transport.abort()


class Writer:
    """Creates, changes and deletes ConfigMaps all the time, whether it is answered or not. No value is used twice."""

    def __init__(self, client: Client, seed: int) -> None:
        self.client, self.random = client, random.Random(seed)
        self.value = self.done = self.lost = 0

    async def run(self) -> None:
        while True:
            self.value += 1
            try:
                await self._write(f"thing-{self.random.randrange(40)}", str(self.value))
                self.done += 1
            except (aiohttp.ClientError, TimeoutError):
                self.lost += 1
            except ApiError as error:
                if error.status < 500 and error.status not in (404, 409, 429):
                    raise
            await asyncio.sleep(WRITE_SECONDS)

    async def _write(self, name: str, value: str) -> None:
        labels = {"labels": {"v": value}}
        match self.random.choice(["create", "create", "change", "change", "delete"]):
            case "create":
                await self.client.create(CONFIG_MAPS, {"metadata": {"name": name, **labels}})
            case "change":
                await self.client.patch(f"{CONFIG_MAPS}/{name}", {"metadata": labels})
            case _:
                await self.client.delete(f"{CONFIG_MAPS}/{name}")


class Version(NamedTuple):
    """One version of a ConfigMap, as etcd remembers it."""

    uid: str
    value: str
    seen: str
    stamp: str  # another for every write of the controller


class History:
    """Every version of every ConfigMap of this namespace since then, read from etcd itself: nothing escapes it."""

    def __init__(self, url: str) -> None:
        self.url, self.began = url, 1  # a revision

    @classmethod
    async def since_now(cls, plane: ControlPlane) -> History:
        history = cls(f"http://127.0.0.1:{plane.layout.ports.etcd}/v3/kv/range")
        async with aiohttp.ClientSession() as session:
            history.began = await history._read_newest(session)
        return history

    async def _read_newest(self, session: aiohttp.ClientSession) -> int:
        return int((await self._ask(session, key=FIRST_KEY))["header"]["revision"])

    async def versions(self) -> list[Version]:
        found = []
        async with aiohttp.ClientSession() as session:
            for revision in range(self.began + 1, await self._read_newest(session) + 1):
                only = {"min_mod_revision": revision, "max_mod_revision": revision}
                answer = await self._ask(session, key=FIRST_KEY, range_end=END_KEY, revision=revision, **only)
                found += [_version(entry["value"]) for entry in answer.get("kvs", ())]
        return found

    async def _ask(self, session: aiohttp.ClientSession, **question: object) -> dict[str, Any]:
        async with session.post(self.url, json=question) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 200, answer
            return answer


def port_of(plane: ControlPlane) -> int:
    port = urlsplit(plane.layout.server).port
    assert port
    return port


def _version(value: str) -> Version:
    meta = json.loads(base64.b64decode(value))["metadata"]
    labels, annotations = meta.get("labels", {}), meta.get("annotations", {})
    return Version(meta["uid"], labels.get("v", ""), annotations.get("seen", ""), annotations.get("stamp", ""))
