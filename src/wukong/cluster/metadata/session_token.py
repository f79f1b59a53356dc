"""Questions with a session token, as AWS (IMDSv2) and Alibaba want them: PUT for a token, and a new one after a 401."""

from __future__ import annotations

from typing import NamedTuple

from wukong.cluster.metadata.cloud import MetadataError, ask, refuse
from wukong.cluster.single_exchange import Answer

TOKEN_SECONDS = 21_600  # the longest that both give
_LONGEST_TOKEN = 4096


class TokenHeaders(NamedTuple):
    lifetime: str  # of the PUT: for how many seconds
    token: str  # of every other question


class TokenSession:
    """Keeps the token until it is refused, or said to be over."""

    def __init__(self, endpoint: str, headers: TokenHeaders) -> None:
        self._endpoint, self._headers = endpoint, headers
        self._token = ""

    async def get(self, path: str) -> Answer:
        """Raises MetadataError if no token is to be had, or nobody answers."""
        is_new = not self._token
        if is_new:
            self._token = await self._fetch_token()
        answer = await self._get(path)
        if answer.status == 401 and not is_new:
            self._token = await self._fetch_token()
            answer = await self._get(path)
        if answer.status == 401:
            self._token = ""
        return answer

    async def _get(self, path: str) -> Answer:
        return await ask("GET", self._endpoint + path, [(self._headers.token, self._token)])

    async def _fetch_token(self) -> str:
        url = f"{self._endpoint}/latest/api/token"
        answer = await ask("PUT", url, [(self._headers.lifetime, str(TOKEN_SECONDS))])
        if answer.status != 200:
            raise refuse(answer, url)
        token = answer.body.decode("latin-1").strip()
        if not token or len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            raise MetadataError(f"{url}: expected a token, got {len(token)} characters that are none")
        return token
