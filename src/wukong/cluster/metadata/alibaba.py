"""Alibaba Cloud: when a preemptible instance is released, about five minutes ahead.

PUT /latest/api/token                                          → a token, as with AWS
GET /latest/meta-data/instance/spot/termination-time           → 404, or 2015-01-05T18:02:00Z
"""

from __future__ import annotations

from wukong.api.times import parse_time
from wukong.cluster.metadata.cloud import CloudNotice, MetadataError, refuse, show
from wukong.cluster.metadata.session_token import TokenHeaders, TokenSession
from wukong.cluster.single_exchange import Answer

ENDPOINT = "http://100.100.100.200"
PATH = "/latest/meta-data/instance/spot/termination-time"
HEADERS = TokenHeaders("X-aliyun-ecs-metadata-token-ttl-seconds", "X-aliyun-ecs-metadata-token")


class Alibaba:
    name = "alibaba"
    pause_seconds = 5.0

    def __init__(self, endpoint: str = ENDPOINT) -> None:
        self._session = TokenSession(endpoint, HEADERS)

    async def poll(self) -> CloudNotice | None:
        return read_termination_time(await self._session.get(PATH))

    async def acknowledge(self, notice: CloudNotice) -> bool:
        return False


def read_termination_time(answer: Answer) -> CloudNotice | None:
    """Raises MetadataError if it says neither when the machine goes nor that it stays."""
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise refuse(answer, PATH)
    deadline = parse_time(answer.body[:100].decode("latin-1").strip())
    if deadline is None:
        raise MetadataError(f"{PATH}: expected a time such as 2026-11-18T10:02:00Z, got {show(answer.body)}")
    return CloudNotice("terminate", deadline)
