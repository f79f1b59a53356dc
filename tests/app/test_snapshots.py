"""What counts as a change while a snapshot comes to rest."""

from __future__ import annotations

import pytest

from wukong.actions import Action, Create, Delete, Note, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, DEPLOYMENTS, NODES, PODS
from wukong.api.resources import Key
from wukong.app.snapshots import is_change
from wukong.ports import PatchBody

WEB = Key("shop", "web")
SPEC, STATUS = {"spec": {"replicas": 2}}, {"status": {"replicas": 2}}
ACTIONS: dict[str, tuple[Action, bool]] = {
    "a note": (Note(PODS, WEB, "reason", "message"), False),
    "a pod is made": (Create(PODS, {}, "shop"), True),
    "a revision is written down": (Create(CONTROLLER_REVISIONS, {}, "shop"), False),
    "a revision goes": (Delete(CONTROLLER_REVISIONS, WEB), True),
    "a pod is patched": (Patch(PODS, WEB, PatchBody("merge", STATUS), "status"), True),
    "another size is wanted": (Patch(DEPLOYMENTS, WEB, PatchBody("merge", SPEC)), True),
    "a status is written": (Patch(DEPLOYMENTS, WEB, PatchBody("merge", STATUS), "status"), False),
    "operations": (Patch(NODES, Key("", "n"), PatchBody("json", [{"op": "remove", "path": "/spec/taints"}])), True),
}


@pytest.mark.parametrize("title", ACTIONS)
def test_pods_and_what_is_wanted_are_changes_and_what_is_said_of_them_is_not(title: str) -> None:
    action, expected = ACTIONS[title]
    assert is_change(action) is expected
