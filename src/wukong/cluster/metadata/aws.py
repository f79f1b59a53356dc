"""AWS: spot interruption notices (two minutes) and rebalance recommendations, by IMDSv2.

PUT /latest/api/token                                     → a token; 401 to a question: it is over, fetch another
GET /latest/meta-data/spot/instance-action                → 404, or {"action": "terminate", "time": "…Z"}
GET /latest/meta-data/events/recommendations/rebalance    → 404, or {"noticeTime": "…Z"}
"""

from __future__ import annotations

from wukong.api.times import parse_time
from wukong.cluster.metadata.cloud import CloudNotice, MetadataError, read_object, read_text, refuse, show
from wukong.cluster.metadata.session_token import TokenHeaders, TokenSession
from wukong.cluster.single_exchange import Answer

ENDPOINT = "http://169.254.169.254"
ACTION_PATH = "/latest/meta-data/spot/instance-action"
REBALANCE_PATH = "/latest/meta-data/events/recommendations/rebalance"
HEADERS = TokenHeaders("X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token")
REBALANCE = "rebalance"
_ACTIONS = ("terminate", "stop", "hibernate")


class Aws:
    name = "aws"
    pause_seconds = 5.0  # as AWS asks for

    def __init__(self, endpoint: str = ENDPOINT) -> None:
        self._session = TokenSession(endpoint, HEADERS)

    async def poll(self) -> CloudNotice | None:
        notice = read_action(await self._session.get(ACTION_PATH))
        return notice or read_rebalance(await self._session.get(REBALANCE_PATH))

    async def acknowledge(self, notice: CloudNotice) -> bool:
        return False


def read_action(answer: Answer) -> CloudNotice | None:
    """Raises MetadataError if it says neither that there is an interruption nor that there is none."""
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise refuse(answer, ACTION_PATH)
    action = read_text(read_object(answer.body, ACTION_PATH).get("action"))
    if action not in _ACTIONS:
        raise MetadataError(f"{ACTION_PATH}: expected one of {', '.join(_ACTIONS)}, got {show(answer.body)}")
    # Without a time it is a notice all the same: AWS says that it goes, and two minutes at most are left.
    return CloudNotice(action, parse_time(read_text(read_object(answer.body, ACTION_PATH).get("time"))))


def read_rebalance(answer: Answer) -> CloudNotice | None:
    """A recommendation has no deadline: an interruption follows in minutes, in hours, or never."""
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise refuse(answer, REBALANCE_PATH)
    if parse_time(read_text(read_object(answer.body, REBALANCE_PATH).get("noticeTime"))) is None:
        raise MetadataError(f"{REBALANCE_PATH}: expected a noticeTime, got {show(answer.body)}")
    return CloudNotice(REBALANCE, None, is_soft=True)
