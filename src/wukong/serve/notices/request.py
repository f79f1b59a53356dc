"""What is sent to the hook: bytes → a notice about one machine, or everything that is wrong with them. Pure.

{"node": "worker-1", "seconds": 120, "source": "eventbridge"}
{"instanceID": "i-0123456789abcdef0", "deadline": "2026-11-18T10:02:00Z", "action": "stop"}
{"node": "worker-1", "action": "withdraw", "source": "eventbridge"}
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import msgspec

from wukong.api.decode import readable
from wukong.api.json_values import check_depth, check_repeated_names, decode_json
from wukong.api.times import parse_time
from wukong.errors import InputError, nearest

TERMINATE, REBALANCE, WITHDRAW = "terminate", "rebalance", "withdraw"
ACTIONS = (TERMINATE, "stop", "hibernate", "preempt", REBALANCE, WITHDRAW)
MOST_SECONDS = 7 * 86_400.0
_NAMES = ("node", "providerID", "instanceID")
_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,59}", re.ASCII)
_NODE_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-.a-z0-9]*[a-z0-9])?", re.ASCII)
_LONGEST_NAME = 500  # of a machine, as its cloud calls it


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    node: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")
    instance_id: str = msgspec.field(default="", name="instanceID")
    seconds: float | None = None
    deadline: str = ""
    action: str = TERMINATE
    source: str = "hook"


class RequestedNotice(NamedTuple):
    """Exactly one of `node`, `provider_id` and `instance_id` is given. `deadline` is None where no time is known."""

    node: str
    provider_id: str
    instance_id: str
    action: str
    source: str
    deadline: float | None
    is_exact: bool  # the deadline is the sender's own; else it is counted from when the notice came

    @property
    def is_soft(self) -> bool:
        return self.action == REBALANCE

    @property
    def is_withdrawn(self) -> bool:
        return self.action == WITHDRAW


_decoder = msgspec.json.Decoder(_Body)


def read_notice_request(data: bytes, now: float) -> RequestedNotice:
    """Raises InputError with every problem."""
    check_depth(data)
    check_repeated_names(data)
    try:
        body = decode_json(data, _decoder, "Was all of it sent?")
    except msgspec.ValidationError as error:
        raise InputError(f"the body: {readable(error)}") from None
    problems = [*_find_name_problems(body), *_find_time_problems(body), *_find_word_problems(body)]
    if problems:
        raise InputError(*problems)
    deadline = parse_time(body.deadline)
    if body.seconds is not None:
        deadline = now + body.seconds
    return RequestedNotice(
        body.node, body.provider_id, body.instance_id, body.action, body.source, deadline, body.seconds is None
    )


def _find_name_problems(body: _Body) -> list[str]:
    names = [name for name in (body.node, body.provider_id, body.instance_id) if name]
    if len(names) != 1:
        return [f"the machine: expected one of {', '.join(_NAMES)}, got {len(names) or 'none'}."]
    if len(names[0]) > _LONGEST_NAME or not names[0].isprintable() or " " in names[0]:
        return [f"the machine: expected its name or id, got {names[0][:60]!r}."]
    if body.node and not _NODE_NAME.fullmatch(body.node):
        return [f"node: expected the name of a Node, got {body.node[:60]!r}."]
    return []


def _find_time_problems(body: _Body) -> list[str]:
    if body.seconds is not None and body.deadline:
        return ["seconds, deadline: expected one of the two, got both."]
    if body.seconds is not None and not (math.isfinite(body.seconds) and 0 <= body.seconds <= MOST_SECONDS):
        return [f"seconds: expected from 0 to {MOST_SECONDS:.0f}, got {body.seconds:g}."]
    if body.deadline and parse_time(body.deadline) is None:
        return [f"deadline: expected a moment such as 2026-11-18T10:02:00Z, got {body.deadline[:60]!r}."]
    return []


def _find_word_problems(body: _Body) -> list[str]:
    problems = []
    if body.action not in ACTIONS:
        hint = nearest(body.action[:60], ACTIONS)
        problems.append(f"action: expected one of {', '.join(ACTIONS)}, got {body.action[:60]!r}.{hint}")
    if not _SOURCE.fullmatch(body.source):
        problems.append(f"source: expected a short name such as eventbridge, got {body.source[:60]!r}.")
    return problems
