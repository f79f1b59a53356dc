"""The course of a change on an embedded cluster: planned, agreed to, tried, written at the version read, followed."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from affinities import HOSTNAME, REQUIRED
from cli.world_session import WEB, Site, WorldObservation, a_session
from forecast.clusters import a_deployment, rolling
from wukong.actions import Action
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.app.changes.writing import try_patch
from wukong.cli.changes.course import Change, CourseOptions, change_workload
from wukong.cli.changes.following import FollowOptions, follow_workload
from wukong.cli.verbs.undo import build_undo
from wukong.embedded.world.transport import perform
from wukong.errors import InputError, Invalid, OutcomeUnknown
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.rules import Rule
from wukong.placement.workloads.template_rules import find_own_rules
from wukong.ports import Document, PatchBody, Selection

Capture = pytest.CaptureFixture[str]
TWO = CourseOptions(is_agreed=True, seeds=range(1, 3), jobs=1)
APART = Edit(rule=Rule(name="apart", topology_key=HOSTNAME))
PER_VERSION = Edit(rule=Rule(name="apart", topology_key=HOSTNAME, is_per_version=True))


def an_edit(edit: Edit) -> Change:
    return Change(resource=DEPLOYMENTS, key=WEB, edit=partial(edit_workload, edit=edit, minor=35))


def with_options(**fields: Any) -> CourseOptions:
    return CourseOptions(**{"is_agreed": True, "seeds": range(1, 3), "jobs": 1, **fields})


def template_of(site: Site) -> Document:
    template: Document = site.get(DEPLOYMENTS)["spec"]["template"]
    return template


@pytest.mark.slow
def test_the_seeds_own_case_is_refused_with_advice_and_nothing_is_written(capsys: Capture) -> None:
    with a_session(nodes=2, workloads=[a_deployment(replicas=2)]) as site:
        before = site.get(DEPLOYMENTS)
        assert change_workload(site.session, an_edit(APART), TWO) == 1
        assert (site.get(DEPLOYMENTS), site.writes) == (before, [])
    out, err = capsys.readouterr()
    assert "Never ends, in 2 of 2." in out
    assert "starts a rollout: spec.template changes" in out
    assert "1. Add matchLabelKeys: [pod-template-hash]" in out
    assert "not changed, for it is not safe. Take advice with --take-advice N." in err


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.slow
def test_with_the_advice_taken_pods_end_apart_and_as_many_as_promised_are_available(
    nodes: int, capsys: Capture
) -> None:
    with a_session(nodes=nodes, workloads=[a_deployment(replicas=2)]) as site:
        fewest = [2]

        def watch(_: object) -> None:
            fewest.append(site.get(DEPLOYMENTS)["status"].get("availableReplicas", 0))

        site.world.listen(watch)
        options = with_options(advice=1) if nodes == 2 else TWO
        assert change_workload(site.session, an_edit(APART), options) == 0
        assert len(set(site.nodes_of_pods())) == len(site.nodes_of_pods()) == 2
        assert min(fewest) == 2, "25 % of 2 allow none to be unavailable"
        assert change_workload(site.session, an_edit(APART), options) == 0
        assert len(site.writes) == 1, "what the advice made of the rule is known again"
        assert change_workload(site.session, an_edit(Edit(removed="apart")), options) == 0
        assert "affinity" not in template_of(site)["spec"]
    out, _ = capsys.readouterr()
    assert "Deployment default/web: complete, 2 pods of the new version available." in out
    assert "(new) is on node-" in out


@pytest.mark.slow
def test_a_safe_change_is_asked_about_written_once_and_known_again(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        site.answers = [False]
        asking = with_options(is_agreed=False)
        assert change_workload(site.session, an_edit(PER_VERSION), asking) == 1
        assert site.writes == []
        assert change_workload(site.session, an_edit(PER_VERSION), asking) == 0
        assert site.questions == ["Change Deployment default/web?"] * 2
        assert len(site.writes) == 1
        assert list(find_own_rules(template_of(site))) == ["apart"]
        assert change_workload(site.session, an_edit(PER_VERSION), TWO) == 0
        assert len(site.writes) == 1
        assert "nothing changes, it is so already" in capsys.readouterr().err
        assert change_workload(site.session, an_edit(Edit(removed="apart")), TWO) == 0
        assert "affinity" not in template_of(site)["spec"]


@pytest.mark.slow
def test_of_two_people_one_wins_and_the_other_is_told_what_changed(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:

        def interfere(action: Action) -> None:
            site.before_write = lambda action: None
            site.patch(DEPLOYMENTS, {"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}})

        site.before_write = interfere
        assert change_workload(site.session, an_edit(PER_VERSION), TWO) == 0
        template = template_of(site)
        assert template["metadata"]["labels"] == {"app": "web", "tier": "front"}
        assert list(find_own_rules(template)) == ["apart"]
    out, err = capsys.readouterr()
    assert "was changed by somebody else meanwhile, so nothing was written, and it is planned again:" in err
    assert "  + spec.template.metadata.labels.tier: front" in err
    assert out.count("What changes") == 2


@pytest.mark.slow
@pytest.mark.parametrize("has_happened", [True, False])
def test_a_write_whose_answer_got_lost_is_looked_for_before_it_is_repeated(has_happened: bool) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:

        def lose_answer(action: Action) -> None:
            site.before_write = lambda action: None
            if has_happened:
                perform(site.world.server, action)
            raise OutcomeUnknown("the connection was lost")

        site.before_write = lose_answer
        assert change_workload(site.session, an_edit(Edit(replicas=3)), TWO) == 0
        assert site.get(DEPLOYMENTS)["spec"]["replicas"] == 3
        assert site.get(DEPLOYMENTS)["metadata"]["generation"] == 2, "it was written once"


@pytest.mark.slow
def test_an_interrupt_leaves_the_rollout_running_and_says_how_to_go_on(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:

        async def interrupt(observation: WorldObservation, seconds: float) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(WorldObservation, "wait", interrupt)
            assert change_workload(site.session, an_edit(PER_VERSION), TWO) == 130
        assert "wukong follow deploy/web -n default" in capsys.readouterr().err
        code, progress = follow_workload(site.session, DEPLOYMENTS, WEB, FollowOptions(timeout_seconds=60.0))
        assert (code, progress and progress.state) == (0, "complete")


def test_a_status_that_moves_on_is_no_reason_to_plan_again(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:

        def move_on(action: Action) -> None:
            site.before_write = lambda action: None
            body = {"status": {"conditions": [{"type": "Odd", "status": "True"}]}}
            site.world.server.patch(DEPLOYMENTS, WEB, PatchBody("merge", body), "status")

        site.before_write = move_on
        assert change_workload(site.session, an_edit(Edit(replicas=3)), TWO) == 0
        assert site.get(DEPLOYMENTS)["spec"]["replicas"] == 3
    assert capsys.readouterr().out.count("What changes") == 1


def test_a_status_that_moves_on_before_the_dry_run_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        left = [{"type": "Odd", "status": status} for status in ("True", "False")]

        async def move_on(*arguments: Any) -> Document:
            if left:
                body = {"status": {"conditions": [left.pop()]}}
                site.world.server.patch(DEPLOYMENTS, WEB, PatchBody("merge", body), "status")
            return await try_patch(*arguments)

        monkeypatch.setattr("wukong.app.changes.writing.try_patch", move_on)
        assert change_workload(site.session, an_edit(Edit(replicas=3)), TWO) == 0
        assert site.get(DEPLOYMENTS)["spec"]["replicas"] == 3
    assert not left


@pytest.mark.parametrize(
    ("meta", "keeper"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "web"}}, "Argo CD keeps it (annotation argocd"),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "Helm keeps it (label app.kubernetes.io/managed-by"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "web"}}, "Flux keeps it (label kustomize"),
    ],
)
def test_what_a_tool_keeps_is_printed_for_git_and_not_written(meta: Document, keeper: str, capsys: Capture) -> None:
    document = a_deployment(replicas=2)
    document["metadata"] |= meta
    with a_session(workloads=[document]) as site:
        assert change_workload(site.session, an_edit(PER_VERSION), TWO) == 1
        assert site.writes == []
    out, _ = capsys.readouterr()
    assert f"Deployment default/web: {keeper}" in out
    assert "matchLabelKeys" in out.partition("Make the change where it comes from")[2]
    assert "What changes" not in out, "nobody waits for a plan of what is not done"


@pytest.mark.slow
def test_another_field_manager_keeps_what_it_applies_unless_forced(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        applied = PatchBody("apply", {"spec": {"minReadySeconds": 0}}, manager="terraform", force=True)
        site.world.server.patch(DEPLOYMENTS, WEB, applied)
        scale = an_edit(Edit(replicas=3))
        assert change_workload(site.session, scale, TWO) == 1
        assert "the field manager terraform applies it" in capsys.readouterr().out
        assert change_workload(site.session, scale, with_options(is_forced=True)) == 0
        assert site.get(DEPLOYMENTS)["spec"]["replicas"] == 3


def test_a_patch_that_drops_rules_says_so_before(capsys: Capture) -> None:
    """The seeds' own command, on a Deployment that has a rule already."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}
    affinity = {"podAntiAffinity": {REQUIRED: [{**term, "labelSelector": {"matchLabels": {"app": "web"}}}]}}
    operation = {"op": "add", "path": "/spec/template/spec/affinity", "value": affinity}
    document = a_deployment(replicas=1, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    with a_session(workloads=[document]) as site:
        site.answers = [False]
        change = Change(resource=DEPLOYMENTS, key=WEB, patch=PatchBody("json", [operation]))
        assert change_workload(site.session, change, with_options(is_agreed=False)) == 1
        assert site.writes == []
    assert "takes the place of 1 rule that is there and not in it" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "patch",
    [
        PatchBody("json", [{"op": "replace", "path": "/spec/replicas", "value": 3}]),
        PatchBody("merge", {"spec": {"replicas": 3}}),
        PatchBody("strategic", {"spec": {"replicas": 3}}),
        PatchBody("apply", {"spec": {"replicas": 3}}),
    ],
)
def test_any_patch_takes_the_same_course(patch: PatchBody) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        change = Change(resource=DEPLOYMENTS, key=WEB, patch=patch)
        assert change_workload(site.session, change, with_options(is_forced=patch.type == "apply")) == 0
        assert (site.get(DEPLOYMENTS)["spec"]["replicas"], len(site.nodes_of_pods())) == (3, 3)


def test_what_the_api_server_refuses_is_refused_before_anything_is_planned(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        patch = PatchBody("merge", {"spec": {"replicas": -1}})
        with pytest.raises(Invalid, match="must be greater than or equal to 0"):
            change_workload(site.session, Change(resource=DEPLOYMENTS, key=WEB, patch=patch), TWO)
        assert site.writes == []
    assert capsys.readouterr().out == ""


def test_a_name_that_is_nearly_right_is_offered() -> None:
    with (
        a_session(workloads=[a_deployment("webb", replicas=1)]) as site,
        pytest.raises(InputError, match=r'there is no Deployment default/web\. Did you mean "webb"'),
    ):
        change_workload(site.session, an_edit(Edit(replicas=1)), TWO)


@pytest.mark.slow
def test_separated_versions_never_share_a_node_from_the_next_rollout_on() -> None:
    with a_session(nodes=4, workloads=[a_deployment(replicas=2)]) as site:
        separate = Edit(rule=Rule(name="separate", topology_key=HOSTNAME))
        assert change_workload(site.session, an_edit(separate), TWO) == 0
        shared: list[str] = []

        def look(_: object) -> None:
            pods = site.world.server.list(PODS, Selection("default", "app=web")).items
            versions = {(pod["spec"].get("nodeName"), pod["metadata"]["labels"]["pod-template-hash"]) for pod in pods}
            nodes = [node for node, _ in versions if node]
            shared.extend(node for node in nodes if nodes.count(node) > 1)

        site.world.listen(look)
        image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
        change = Change(resource=DEPLOYMENTS, key=WEB, patch=PatchBody("strategic", image))
        assert change_workload(site.session, change, TWO) == 0
        assert shared == []
        assert change_workload(site.session, an_edit(Edit(removed="separate")), TWO) == 0
        assert "affinity" not in template_of(site)["spec"]


def test_an_old_api_server_is_refused_before_anything_is_tried() -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        separate = Edit(rule=Rule(name="separate", topology_key=HOSTNAME))
        change = Change(resource=DEPLOYMENTS, key=WEB, edit=partial(edit_workload, edit=separate, minor=30))
        with pytest.raises(InputError, match=r"1\.30, which drops mismatchLabelKeys silently"):
            change_workload(site.session, change, TWO)
        assert site.writes == []


def test_the_document_for_programs_has_patch_plan_and_end_and_nothing_else_is_printed(capsys: Capture) -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        assert change_workload(site.session, an_edit(Edit(replicas=3)), with_options(output="json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["patch"], document["patchType"]) == ({"spec": {"replicas": 3}}, "strategic")
    assert document["plan"]["verdict"]["isSafe"]
    assert (document["isWritten"], document["isUndone"], document["keeper"]) == (True, False, "")
    assert (document["progress"]["state"], document["progress"]["available"]) == ("complete", 3)


@pytest.mark.slow
def test_an_undo_goes_back_to_the_revision_before_and_the_old_replica_set_serves_again() -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        before = template_of(site)
        assert change_workload(site.session, an_edit(PER_VERSION), TWO) == 0
        assert template_of(site) != before
        assert change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, None), TWO) == 0
        assert template_of(site) == before
        assert site.get(DEPLOYMENTS)["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        with pytest.raises(InputError, match="there is no revision 1; there are 2, 3"):
            change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, 1), TWO)


@pytest.mark.slow
def test_an_undo_of_a_paused_rollout_goes_on_with_the_old_template() -> None:
    with a_session(workloads=[a_deployment(replicas=2)]) as site:
        before = template_of(site)
        container = {"name": "web", "image": "web:2"}
        site.patch(DEPLOYMENTS, {"spec": {"template": {"spec": {"containers": [container]}}}})
        site.world.run(seconds=2.0)
        site.patch(DEPLOYMENTS, {"spec": {"paused": True}})
        site.world.run(seconds=60.0)
        assert change_workload(site.session, build_undo(site.session, DEPLOYMENTS, WEB, None), TWO) == 0
        assert template_of(site) == before
        assert "paused" not in site.get(DEPLOYMENTS)["spec"]


@pytest.mark.slow
def test_a_stateful_set_is_patched_and_undone_by_its_revisions() -> None:
    document = {**a_deployment(replicas=2), "kind": "StatefulSet"}
    with a_session(workloads=[document]) as site:
        before = site.get(STATEFUL_SETS)["spec"]["template"]
        change = Change(resource=STATEFUL_SETS, key=WEB, edit=partial(edit_workload, edit=PER_VERSION))
        assert change_workload(site.session, change, with_options(is_forced=True)) == 0
        assert list(find_own_rules(site.get(STATEFUL_SETS)["spec"]["template"])) == ["apart"]
        undo = build_undo(site.session, STATEFUL_SETS, WEB, None)
        assert change_workload(site.session, undo, with_options(is_forced=True)) == 0
        assert site.get(STATEFUL_SETS)["spec"]["template"] == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (a_deployment(replicas=2, paused=True), "it is paused"),
        (
            {**a_deployment(replicas=2, updateStrategy={"type": "OnDelete"}), "kind": "StatefulSet"},
            "its update strategy is OnDelete",
        ),
    ],
)
def test_what_nobody_rolls_out_is_not_waited_for(document: Document, reason: str, capsys: Capture) -> None:
    resource = DEPLOYMENTS if document["kind"] == "Deployment" else STATEFUL_SETS
    with a_session(workloads=[document]) as site:
        change = Change(resource=resource, key=WEB, edit=partial(edit_workload, edit=PER_VERSION))
        assert change_workload(site.session, change, with_options(is_forced=True)) == 0
        assert list(find_own_rules(site.get(resource)["spec"]["template"])) == ["apart"]
    assert f"not followed, for {reason}" in capsys.readouterr().err


@pytest.mark.slow
def test_a_rollout_that_is_stuck_says_why_and_fails_when_the_time_is_over(capsys: Capture) -> None:
    with a_session(nodes=2, workloads=[a_deployment(replicas=2)]) as site:
        forced = with_options(is_forced=True, timeout_seconds=90.0)
        assert change_workload(site.session, an_edit(APART), forced) == 1
    out, _ = capsys.readouterr()
    assert "1 pod waits: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules" in out
    assert "node-1, node-2: its podAntiAffinity[0]" in out
    assert "Deployment default/web: not complete after 1 min 30 s: 1 of 2 new pods are there." in out


@pytest.mark.slow
def test_a_rollout_that_fails_is_written_back_where_that_is_asked_for(capsys: Capture) -> None:
    with a_session(nodes=2, workloads=[a_deployment(replicas=2, progressDeadlineSeconds=60)]) as site:
        spec = site.get(DEPLOYMENTS)["spec"]
        forced = with_options(is_forced=True, undoes=True)
        assert change_workload(site.session, an_edit(APART), forced) == 1
        assert (site.get(DEPLOYMENTS)["spec"], len(site.writes)) == (spec, 2)
        assert len(site.nodes_of_pods()) == 2
    out, err = capsys.readouterr()
    assert "exceeded its progress deadline: nothing moved for 60 s" in out
    assert "undone, it is as it was before" in err
    assert "Deployment default/web: complete" in out


@pytest.mark.slow
def test_what_somebody_else_changed_since_is_not_written_back(capsys: Capture) -> None:
    with a_session(nodes=2, workloads=[a_deployment(replicas=2)]) as site:

        def interfere(action: Action) -> None:
            if len(site.writes) == 1:
                site.patch(DEPLOYMENTS, {"spec": {"minReadySeconds": 1}})

        site.before_write = interfere
        forced = with_options(is_forced=True, undoes=True, timeout_seconds=30.0)
        assert change_workload(site.session, an_edit(APART), forced) == 1
        assert list(find_own_rules(template_of(site))) == ["apart"]
    assert "not undone, for somebody else has changed it since" in capsys.readouterr().err


@pytest.mark.slow
def test_what_takes_longer_than_planned_is_said_as_soon_as_it_shows(capsys: Capture) -> None:
    with a_session(nodes=2, workloads=[a_deployment(replicas=2, strategy=rolling(0, 1))]) as site:

        def take_nodes(action: Action) -> None:
            for node in ("node-1", "node-2"):
                site.patch(NODES, {"spec": {"unschedulable": True}}, Key("", node))

        site.before_write = take_nodes
        assert change_workload(site.session, an_edit(PER_VERSION), with_options(timeout_seconds=300.0)) == 1
    out, _ = capsys.readouterr()
    assert "Later than planned: planned" in out
    assert "1 pod waits: 0/2 nodes are available: 2 node(s) were unschedulable." in out
