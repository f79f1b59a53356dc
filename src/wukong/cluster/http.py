"""One HTTP session with an API server: sends requests and turns every failure into an error. Used by kube.py only.

A request ends in the answer's bytes or in one ClusterError. What matters is what is known about a write that failed:
no connection → ServerFailed, nothing was sent; connection lost or timed out after that → OutcomeUnknown, look first.
Nothing is repeated here, except after a 401 with renewed credentials, which is an answer: the write did not happen.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
import msgspec

from wukong import __version__
from wukong.cluster.api_status import build_error, read_retry_after
from wukong.cluster.credentials import Credentials, Headers
from wukong.cluster.redaction import redact_urls
from wukong.errors import ClusterError, OutcomeUnknown, ServerFailed, Stalled

CONNECTIONS = 64
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 65.0  # the API server itself gives up on a request after 60
# A watch hears a bookmark about once a minute: one silent for this long has lost its server and does not know it yet.
STALL_SECONDS = 90.0
READ_BUFFER = 1 << 20  # an object may have 1.5 MB; with the default of 64 kB a watch is mostly waking up
LONGEST_LINE = 64 << 20  # bytes; an object has at most a few million
_CONNECT_ERRORS = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
_CONNECTION_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class Http:
    """Use it in an `async with`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """A request ends after `answer_seconds`; one that reads, also when no byte came for `stall_seconds`."""
        self.credentials = credentials
        self._answer_seconds, self._stall_seconds = answer_seconds, stall_seconds
        self._sessions: list[aiohttp.ClientSession] = []  # the last one is in use; see _session
        self._generation = -1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._sessions:
            await self._sessions.pop().close()

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Send one request and return the whole answer."""
        data = None if body is None else msgspec.json.encode(body)
        is_write = method != "GET"
        timeout = self._timeout(self._answer_seconds, None if is_write else self._stall_seconds)
        request = {"params": params, "timeout": timeout, "data": data, "content_type": content_type}
        try:
            async with self._open_response(method, path, request) as response:
                answer = await response.read()
        except _CONNECTION_ERRORS as error:
            raise self._build_connection_error(error, is_write) from error
        if response.status >= 300:
            raise _build_response_error(response, answer, is_write)
        return answer

    async def read_lines(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a streamed answer, until the server ends it. Raises Stalled when nothing comes."""
        timeout = self._timeout(None, self._stall_seconds)
        rest = b""
        try:
            async with self._open_response("GET", path, {"params": params, "timeout": timeout}) as response:
                if response.status >= 300:
                    raise _build_response_error(response, await response.read())
                try:
                    async for piece in response.content.iter_any():
                        *whole, rest = (rest + piece).split(b"\n")
                        if len(rest) > LONGEST_LINE:
                            message = (
                                f"{self.credentials.server} sent a line of more than {LONGEST_LINE} bytes on a watch"
                            )
                            raise ServerFailed(message)
                        for line in whole:
                            yield line
                finally:
                    _abort(response)
        except aiohttp.SocketTimeoutError as error:
            silence = f"{self.credentials.server} said nothing on a watch for {self._stall_seconds:g} s"
            raise Stalled(silence, reason="Stalled") from error
        except _CONNECTION_ERRORS as error:
            raise self._build_connection_error(error, is_write=False) from error
        if rest:
            raise ServerFailed(f"{self.credentials.server} ended a watch in the middle of a line")

    def _timeout(self, total: float | None, stall_seconds: float | None) -> aiohttp.ClientTimeout:
        connect_seconds = min(CONNECT_SECONDS, self._stall_seconds)
        return aiohttp.ClientTimeout(total=total, sock_connect=connect_seconds, sock_read=stall_seconds)

    @asynccontextmanager
    async def _open_response(
        self, method: str, path: str, request: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the response once its head is there. After a 401, renew credentials and ask again if they changed."""
        headers = await self.credentials.headers()
        response = await self._request(method, path, headers, **request)
        if response.status == 401:
            rejected_body = await response.read()
            if await self.credentials.renew(headers):
                response.release()
                response = await self._request(method, path, await self.credentials.headers(), **request)
            else:
                raise build_error(401, rejected_body)
        async with response:
            yield response

    async def _request(
        self,
        method: str,
        path: str,
        headers: Headers,
        *,
        data: bytes | None = None,
        content_type: str = "",
        **options: Any,
    ) -> aiohttp.ClientResponse:
        session = await self._session()
        return await session.request(
            method,
            self.credentials.server + path,
            headers=[*headers, *([("Content-Type", content_type)] if data is not None else [])],
            data=_stream_once(data) if data is not None and method == "DELETE" else data,
            proxy=self.credentials.proxy or None,
            server_hostname=self.credentials.tls_server_name or None,
            allow_redirects=False,  # it would carry our token elsewhere
            **options,
        )

    async def _session(self) -> aiohttp.ClientSession:
        """Return a session whose connections use the current certificate. The one before may still serve watches."""
        if self._generation != self.credentials.generation or not self._sessions:
            self._generation = self.credentials.generation
            tls = self.credentials.tls
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls if tls is not None else False)
            agent = {"User-Agent": f"wukong/{__version__}", "Accept": "application/json"}
            self._sessions.append(aiohttp.ClientSession(connector=connector, headers=agent, read_bufsize=READ_BUFFER))
            while len(self._sessions) > 2:
                await self._sessions.pop(0).close()
        return self._sessions[-1]

    def _build_connection_error(self, error: Exception, is_write: bool) -> ClusterError:
        message = redact_urls(str(error) or type(error).__name__)
        server = self.credentials.server
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            self.credentials.reload_authority()  # for the next attempt
            fix = "Is certificate-authority the cluster's own, and the address in its certificate?"
            return ClusterError(f"{server}: its certificate cannot be trusted: {message}. {fix}", reason="Untrusted")
        if isinstance(error, _CONNECT_ERRORS):
            return ServerFailed(f"{server} cannot be reached: {message}", reason="Unreachable")
        if is_write:
            return OutcomeUnknown(f"{server} was lost before it answered: {message}", reason="AnswerLost")
        return ServerFailed(f"{server} was lost before it answered: {message}", reason="AnswerLost")


def _build_response_error(response: aiohttp.ClientResponse, answer: bytes, is_write: bool = False) -> ClusterError:
    retry_after = read_retry_after(response.headers.get("Retry-After", ""), response.headers.get("Date", ""))
    return build_error(response.status, answer, retry_after=retry_after, is_write=is_write)


def _abort(response: aiohttp.ClientResponse) -> None:
    """Close an unfinished stream at once: a TLS shutdown would outlive the event loop."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def _stream_once(data: bytes) -> AsyncIterator[bytes]:
    """Yield the body once. aiohttp repeats a DELETE when the connection breaks, but cannot repeat a stream."""
    yield data
