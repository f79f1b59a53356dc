"""Whether an update with surge has put a new pod of a DaemonSet beside an old one: then the old one stays."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.checkers.daemon_pods import surges
from wukong.embedded.checkers.pod_deletions import _is_surged
from wukong.embedded.world import objects


def a_set(max_surge: Any = 1, image: str = "web:2") -> Any:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": max_surge}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    metadata = {"name": "web", "namespace": "shop", "uid": "set"}
    return objects.read(
        "DaemonSet.apps", {"metadata": metadata, "spec": {"updateStrategy": strategy, "template": template}}
    )


def a_daemon(image: str, *, ready: bool, revision: str | None = None) -> Any:
    labels = {"app": "web", "controller-revision-hash": revision or image}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    document = {
        "metadata": {"name": f"web-{image[-1]}", "namespace": "shop", "uid": image, "labels": labels},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", "image": image}]},
        "status": {"phase": "Running", "conditions": conditions},
    }
    return objects.read("Pod", document)


OLD, NEW = a_daemon("web:1", ready=True), a_daemon("web:2", ready=False)


@pytest.mark.parametrize(
    ("pod", "siblings", "owner", "is_kept"),
    [
        (OLD, [NEW], a_set(), True),
        (OLD, [NEW], a_set("50%"), True),
        (OLD, [NEW], a_set(0), False),
        (OLD, [NEW], a_set("0%"), False),
        (OLD, [NEW], a_set(None), False),
        (OLD, [], a_set(), False),
        (OLD, [NEW, NEW], a_set(), False),
        (OLD, [a_daemon("web:2", ready=True)], a_set(), False),  # it is ready: the old one may go
        (a_daemon("web:1", ready=False), [NEW], a_set(), False),
        (OLD, [NEW], a_set(image="web:1"), False),  # turned round meanwhile
        (OLD, [NEW], a_set(image="web:3"), False),  # neither is new any more
        (OLD, [a_daemon("web:2", ready=False, revision="web:1")], a_set(), False),
    ],
)
def test_an_old_daemon_stays_until_the_new_one_beside_it_is_ready(
    pod: Any, siblings: list[Any], owner: Any, is_kept: bool
) -> None:
    assert _is_surged(pod, siblings, owner) is is_kept


def test_without_a_strategy_nothing_surges() -> None:
    plain = objects.read("DaemonSet.apps", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
    assert not surges(plain)  # type: ignore[arg-type]
