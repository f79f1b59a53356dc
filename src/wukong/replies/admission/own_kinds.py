"""Objects of our own kinds as they are stored: what a condition would say of them is said to `kubectl apply` at once.

Called by serve.admission. An object that is being deleted, or whose spec does not change, passes whatever it says: a
finalizer can always be removed, and a label always be set.
"""

from __future__ import annotations

from wukong.api.decode import decode_one
from wukong.api.json_values import check_depth, load_json
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, ROLLOUTS, WUKONGS
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.rollout import Rollout
from wukong.api.vm import Wukong
from wukong.errors import InputError
from wukong.placement.compile import find_policy_problems
from wukong.placement.rollout import find_rollout_problems
from wukong.placement.rule import Rules
from wukong.placement.vm import VmSettings, find_wukong_problems
from wukong.replies.admission.reply import ObjectRequest, Reply

OWN_KINDS = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, ROLLOUTS, WUKONGS)
_GROUP_KINDS = frozenset(resource.group_kind for resource in OWN_KINDS)
_LONGEST_MESSAGE = 8_192  # characters


class KindAdmission:
    def __init__(self, rules: Rules, vm_settings: VmSettings | None = None) -> None:
        self._rules, self._vm_settings = rules, vm_settings or VmSettings()

    def review(self, request: ObjectRequest) -> Reply:
        if request.group_kind not in _GROUP_KINDS:
            return Reply("left-alone")
        try:
            check_depth(request.document)
            if _is_left_as_it_was(request):
                return Reply("accepted")
            subject = decode_one(request.document, request.group_kind)
            problems = self._find_problems(subject)
        except InputError as error:
            problems = list(error.problems)
        return Reply("denied", message=_format_message(problems)) if problems else Reply("accepted")

    def _find_problems(self, subject: Object) -> list[str]:
        if isinstance(subject, Wukong):
            return find_wukong_problems(subject, self._rules, self._vm_settings)
        if isinstance(subject, Rollout):
            return find_rollout_problems(subject)
        assert isinstance(subject, PlacementPolicy | ClusterPlacementPolicy)
        return find_policy_problems(subject, self._rules)


def _is_left_as_it_was(request: ObjectRequest) -> bool:
    """Whether it is being deleted, or says what it said before."""
    document = load_json(request.document)
    if not isinstance(document, dict):
        return False
    meta = document.get("metadata")
    if isinstance(meta, dict) and meta.get("deletionTimestamp"):
        return True
    check_depth(request.old)
    old = load_json(request.old)
    return isinstance(old, dict) and bool(old) and old.get("spec") == document.get("spec")


def _format_message(problems: list[str]) -> str:
    """A line per problem."""
    text = "\n".join(problems)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"
