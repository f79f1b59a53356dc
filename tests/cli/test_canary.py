"""`--canary` on an embedded cluster: a few pods first, then on or back; and whatever ends it, nothing of it is left."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cli.world_session import WEB, Site, WorldObservation, a_session
from forecast.clusters import a_deployment, rolling
from wukong.actions import Action
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.cli.changes.canary import CanaryOptions
from wukong.cli.changes.course import Change, CourseOptions, change_workload
from wukong.cli.verbs.undo import build_undo
from wukong.embedded.world.transport import perform
from wukong.errors import InputError
from wukong.placement.workloads.canaries import ANNOTATION, find_canary
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.ports import Document, PatchBody, Selection

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.slow
TWO = CourseOptions(is_agreed=True, seeds=range(1, 3), jobs=1, timeout_seconds=120.0)
IMAGE = PatchBody("strategic", {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}})


def a_canary(pods: int = 1, check: str = "") -> Change:
    return Change(resource=DEPLOYMENTS, key=WEB, patch=IMAGE, canary=CanaryOptions(pods=pods, check=check))


def is_clean(site: Site) -> bool:
    document = site.get(DEPLOYMENTS)
    return "paused" not in document["spec"] and ANNOTATION not in document["metadata"].get("annotations", {})


def image_of(site: Site) -> str:
    return str(site.get(DEPLOYMENTS)["spec"]["template"]["spec"]["containers"][0]["image"])


def break_pods(site: Site) -> None:
    """New pods of this world are restarted as soon as they run."""

    def hear(change: Any) -> None:
        if change.kind == "Pod" and change.new is not None and change.new.spec.node_name:
            pod = site.world.server.get(PODS, change.key)
            if pod["spec"]["containers"][0]["image"] != "web:2" or pod["status"].get("message") == "broken":
                return
            body = {"status": {"message": "broken", "containerStatuses": [a_status(3)]}}
            site.world.server.patch(PODS, change.key, PatchBody("merge", body), "status")

    site.world.listen(hear)


def a_status(restarts: int) -> Document:
    return {"name": "web", "image": "web:2", "imageID": "", "ready": False, "restartCount": restarts}


def test_a_canary_that_is_well_goes_on_with_the_strategy_of_before(capsys: Capture) -> None:
    document = a_deployment(replicas=4, strategy=rolling("50%", 0))
    with a_session(nodes=3, workloads=[document]) as site:
        strategy = site.get(DEPLOYMENTS)["spec"]["strategy"]
        created: list[int] = []
        site.before_write = lambda action: created.append(len(list_new_pods(site)))
        assert change_workload(site.session, a_canary(2, "true"), TWO) == 0
        assert (image_of(site), site.get(DEPLOYMENTS)["spec"]["strategy"]) == ("web:2", strategy)
        assert is_clean(site)
        assert created == [0, 2, 2], "begun, paused once two pods were created, and resumed with those two"
    out, err = capsys.readouterr()
    assert "The canary: 2 new pods are available, and the check 'true' ended with 0. It goes on." in err
    assert "complete, 4 pods of the new version available" in out


def list_new_pods(site: Site) -> list[Document]:
    pods = site.world.server.list(PODS, Selection("default", "app=web")).items
    return [pod for pod in pods if pod["spec"]["containers"][0]["image"] == "web:2"]


@pytest.mark.parametrize(
    ("prepare", "check", "reason"),
    [
        (lambda site: None, "exit 3", "the check 'exit 3' ended with 3"),
        (break_pods, "", "was restarted 3 times"),
    ],
)
def test_a_canary_that_is_not_well_is_undone_whole(
    prepare: Callable[[Site], None], check: str, reason: str, capsys: Capture
) -> None:
    with a_session(nodes=3, workloads=[a_deployment(replicas=3)]) as site:
        spec = copy.deepcopy(site.get(DEPLOYMENTS)["spec"])
        prepare(site)
        assert change_workload(site.session, a_canary(1, check), TWO) == 1
        assert site.get(DEPLOYMENTS)["spec"] == spec
        assert is_clean(site)
        site.world.run(seconds=60.0)  # the last of them is still being stopped
        assert list_new_pods(site) == []
    assert reason in capsys.readouterr().err


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("has_happened", [True, False])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_after_a_crash_at_any_write_an_undo_leaves_nothing_of_it(number: int, has_happened: bool) -> None:
    with a_session(nodes=3, workloads=[a_deployment(replicas=3)]) as site:
        spec = copy.deepcopy(site.get(DEPLOYMENTS)["spec"])

        def crash(action: Action) -> None:
            if len(site.writes) == number - 1:
                site.before_write = lambda action: None
                if has_happened:
                    perform(site.world.server, action)
                raise Crash

        site.before_write = crash
        with pytest.raises(Crash):
            change_workload(site.session, a_canary(), TWO)
        site.world.run(seconds=30.0)
        if number == 1 and not has_happened:
            assert site.get(DEPLOYMENTS)["spec"] == spec
            return
        if find_canary(site.get(DEPLOYMENTS)) is not None:
            with pytest.raises(InputError, match="a canary is under way"):
                change_workload(site.session, a_canary(), TWO)
        assert change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, None), TWO) == 0
        assert site.get(DEPLOYMENTS)["spec"] == spec
        assert is_clean(site)


def test_a_canary_that_somebody_else_changes_is_left_to_an_undo(capsys: Capture) -> None:
    with a_session(nodes=3, workloads=[a_deployment(replicas=3)]) as site:

        def interfere(action: Action) -> None:
            if len(site.writes) == 2:
                site.patch(DEPLOYMENTS, {"metadata": {"labels": {"team": "a"}}})

        site.before_write = interfere
        assert change_workload(site.session, a_canary(), TWO) == 1
        assert "wukong undo deploy/web -n default takes it back" in capsys.readouterr().err
        assert change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, None), TWO) == 0
        assert is_clean(site)


def test_a_record_that_kubectl_brought_back_from_a_replica_set_is_stale() -> None:
    with a_session(nodes=3, workloads=[a_deployment(replicas=3)]) as site:
        assert change_workload(site.session, a_canary(), TWO) == 0
        sets = site.world.server.list(REPLICA_SETS, Selection("default")).items
        text = next(
            s["metadata"]["annotations"][ANNOTATION] for s in sets if ANNOTATION in s["metadata"]["annotations"]
        )
        site.patch(DEPLOYMENTS, {"metadata": {"annotations": {ANNOTATION: text}}})
        assert find_canary(site.get(DEPLOYMENTS)) is None


@pytest.mark.parametrize(
    ("document", "pods", "problem"),
    [
        (a_deployment(replicas=2, strategy={"type": "Recreate"}), 1, "its strategy is Recreate"),
        (a_deployment(replicas=2, paused=True), 1, "it is paused"),
        (a_deployment(replicas=2), 3, "expected 1 to 2 pods, its replicas, got 3"),
    ],
)
def test_where_there_can_be_no_canary_it_is_said(document: Document, pods: int, problem: str) -> None:
    with a_session(workloads=[document]) as site:
        if document["spec"].get("paused"):
            site.world.run(seconds=1.0)
        with pytest.raises(InputError, match=problem):
            change_workload(site.session, a_canary(pods), TWO)
        assert site.writes == []


def test_an_interrupt_leaves_the_canary_and_says_how_it_is_taken_back(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_session(nodes=3, workloads=[a_deployment(replicas=3)]) as site:

        async def interrupt(observation: WorldObservation, seconds: float) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(WorldObservation, "wait", interrupt)
            with pytest.raises(KeyboardInterrupt):
                change_workload(site.session, a_canary(), TWO)
        assert "wukong undo deploy/web -n default takes it back" in capsys.readouterr().err
        assert change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, None), TWO) == 0
        assert is_clean(site)


def test_what_changes_more_than_the_template_is_no_canary() -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        body = {"spec": {**IMAGE.body["spec"], "minReadySeconds": 1}}
        change = Change(resource=DEPLOYMENTS, key=WEB, patch=PatchBody("strategic", body), canary=CanaryOptions(pods=1))
        with pytest.raises(InputError, match="Change the rest apart"):
            change_workload(site.session, change, TWO)
        assert site.writes == []


def test_without_a_new_version_there_is_nothing_to_try() -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        scale = partial(edit_workload, edit=Edit(replicas=3))
        change = Change(resource=DEPLOYMENTS, key=Key("default", "web"), edit=scale, canary=CanaryOptions(pods=1))
        with pytest.raises(InputError, match="no new version to try"):
            change_workload(site.session, change, TWO)
