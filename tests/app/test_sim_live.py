"""A scenario on a cluster that others use, too: its course happens there, and only to what the run made itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from app.live_world import TEMPLATE, LiveWorld, a_scenario, a_workload, play_in_live_world
from wukong.api.kinds import DEPLOYMENTS, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from wukong.api.resources import Key, Resource
from wukong.app.sim_live import Options, play_live
from wukong.app.sim_live.ownership import RUN_LABEL, fields_to_apply, label_document
from wukong.app.sim_live.watch_source import lasting_part_of
from wukong.embedded.actors.kubelet.behaviour import SILENT
from wukong.embedded.scenario import Story
from wukong.embedded.world import objects
from wukong.errors import Conflict, InputError
from wukong.ports import Document, PatchBody

OWN_NODES = Options(create_nodes=True)
WEB = Key("shop", "web")
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


async def refusal_of(site: LiveWorld, *timeline: Document, options: Options = OWN_NODES, **fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        await play_live(site.cluster, a_scenario(*timeline, **fields), options, site.say)
    return str(caught.value)


def texts_of(story: Story, subject: str) -> list[str]:
    """But that it is added, which is told of nodes and happens before the beginning."""
    return [event.text for event in story.events if event.subject == subject and event.text != "added"]


# ---- the course


def test_pods_get_ready_a_drain_happens_and_nothing_is_left() -> None:
    async def run(site: LiveWorld) -> None:
        story = await play_live(site.cluster, a_scenario({"at": "3s", "drain": "own-1"}), OWN_NODES, site.say)
        web = story.workloads["shop/web"]
        assert story.settled, story.stuck
        assert (web.replicas, web.available, web.per_node) == (2, 2, {"own-2": 2})
        assert texts_of(story, "node own-1") == ["cordoned", "drain begins"]
        assert story.writes == len(list(story.trace)) > 10
        first = [json.loads(line) for line in story.trace][:3]
        assert all(line.keys() == {"at", "change", "kind", "key"} for line in first)
        assert {"at": 0.0, "change": "ADDED", "kind": "Node", "key": "own-1"} in first
        assert [event.at for event in story.events if event.text == "drain begins"] == [pytest.approx(3, abs=0.2)]
        assert (site.names("Node"), site.names("Deployment"), site.names("Pod")) == ([], [], [])
        assert "shop" not in site.names("Namespace")
        assert len(site.messages) == 1
        assert "Deployment shop/web, Namespace shop, Node own-1, Node own-2" in site.messages[0]

    play_in_live_world(run)


def test_all_nodes_of_a_second_are_cordoned_before_any_is_emptied() -> None:
    async def run(site: LiveWorld) -> None:
        entries: list[Document] = [{"at": "3s", "drain": "own-1"}, {"at": "3s", "drain": "own-2"}]
        story = await play_live(site.cluster, a_scenario(*entries), OWN_NODES, site.say)
        nodes = [event for event in story.events if event.subject.startswith("node own") and event.text != "added"]
        assert [event.text for event in nodes] == ["cordoned", "cordoned", "drain begins", "drain begins"]
        assert not story.settled
        assert any("pending" in reason for reason in story.stuck), story.stuck

    play_in_live_world(run)


def test_a_drain_begins_in_its_second_whatever_comes_later() -> None:
    async def run(site: LiveWorld) -> None:
        entries: list[Document] = [{"at": "3s", "drain": "own-1"}, {"at": "30s", "uncordon": "own-1"}]
        story = await play_live(site.cluster, a_scenario(*entries), OWN_NODES, site.say)
        assert [event.at for event in story.events if event.text == "drain begins"] == [pytest.approx(3, abs=0.2)]
        assert story.workloads["shop/web"].restarts == 1

    play_in_live_world(run)


def test_a_namespace_is_made_at_once_as_the_scenario_has_it() -> None:
    meta = {"name": "shop", "labels": {"team": "a"}}
    namespace: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    created: list[Document] = []

    async def run(site: LiveWorld) -> None:
        create = site.cluster.create

        async def record(resource: Resource, body: Document, namespace: str = "") -> Document:
            created.extend([body] if resource == NAMESPACES else [])
            return await create(resource, body, namespace)

        site.cluster.create = record  # type: ignore[method-assign]
        await play_live(site.cluster, a_scenario(manifests=[namespace, a_workload()]), OWN_NODES, site.say)
        assert [document["metadata"]["labels"]["team"] for document in created] == ["a"]

    play_in_live_world(run)


def test_everything_in_a_namespace_of_the_run_is_its_own() -> None:
    """Operators make pods that do not carry the label; with the namespace they go anyhow."""
    unlabelled = {"metadata": {"name": "operated"}, "spec": TEMPLATE["spec"]}

    async def run(site: LiveWorld) -> None:
        site.when(3, lambda: site.world.server.create(PODS, unlabelled, "shop"))
        deletion = {"at": "10s", "delete": {"kind": "Pod", "name": "operated", "namespace": "shop"}}
        await play_live(site.cluster, a_scenario(deletion), OWN_NODES, site.say)
        assert site.names("Pod") == []

    play_in_live_world(run)


def test_a_timeline_patches_scales_and_deletes_what_the_run_made() -> None:
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
    web = {"kind": "Deployment", "name": "web", "namespace": "shop"}
    images, replicas = list[str](), list[int]()

    async def run(site: LiveWorld) -> None:
        def look() -> None:
            spec = site.world.server.get(DEPLOYMENTS, WEB)["spec"]
            images.append(spec["template"]["spec"]["containers"][0]["image"])
            replicas.append(spec["replicas"])

        scenario = a_scenario(
            {"at": "5s", "patch": {**web, "patch": image}},
            {"at": "10s", "scale": {**web, "replicas": 3}},
            {"at": "15s", "delete": web},
        )
        for moment in (4, 9, 14):
            site.when(moment, look)
        story = await play_live(site.cluster, scenario, OWN_NODES, site.say)
        assert images == ["web:1", "web:2", "web:2"]
        assert replicas == [2, 2, 3]
        assert "Deployment deleted" in texts_of(story, "shop/web")

    play_in_live_world(run)


@pytest.mark.parametrize("kind", ["json", "merge", "strategic"])
def test_patches_of_every_type_reach_what_the_run_made(kind: str) -> None:
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 1}]
    patch = operations if kind == "json" else {"spec": {"replicas": 1}}
    target = {"kind": "Deployment", "name": "web", "namespace": "shop", "type": kind, "patch": patch}

    async def run(site: LiveWorld) -> None:
        story = await play_live(site.cluster, a_scenario({"at": "5s", "patch": target}), OWN_NODES, site.say)
        assert story.workloads["shop/web"].available == 1

    play_in_live_world(run)


def test_what_is_applied_again_is_the_same_object() -> None:
    async def run(site: LiveWorld) -> None:
        entries = [
            {"at": "5s", "apply": a_workload(replicas=1)},
            {"at": "10s", "apply": a_workload(replicas=1, paused=True)},
        ]
        seen: list[Document] = []
        for moment in (4, 9, 14):
            site.when(moment, lambda: seen.append(site.world.server.get(DEPLOYMENTS, WEB)))
        story = await play_live(site.cluster, a_scenario(*entries), OWN_NODES, site.say)
        assert [document["spec"]["replicas"] for document in seen] == [2, 1, 1]
        assert [document["spec"].get("paused") for document in seen] == [None, None, True]
        assert len({document["metadata"]["uid"] for document in seen}) == 1
        assert story.workloads["shop/web"].available == 1

    play_in_live_world(run)


@pytest.mark.parametrize("conflicts", [0, 1, 3])
def test_before_an_apply_its_manager_is_made_the_owner_of_what_was_created(conflicts: int) -> None:
    """On the very version that was read, which is read again where controllers wrote meanwhile."""

    async def run(site: LiveWorld) -> None:
        patch_of_store, asked = site.cluster.patch, list[PatchBody]()
        versions: list[str] = []

        async def patch(resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
            if patch.type == "json":
                versions.append(site.world.server.get(resource, key)["metadata"]["resourceVersion"])
                asked.append(patch)
                if len(asked) <= conflicts:
                    note = {"metadata": {"annotations": {"somebody": f"wrote {len(asked)}"}}}
                    site.world.server.patch(resource, key, PatchBody("merge", note))
                    raise Conflict("it changed")
            if patch.type == "json":  # an embedded cluster works out who owns what, and takes nobody's word for it
                document = site.world.server.get(resource, key)
                return {**document, "metadata": {**document["metadata"], "managedFields": patch.body[2]["value"]}}
            return await patch_of_store(resource, key, patch, subresource)

        site.cluster.patch = patch  # type: ignore[method-assign]
        uids: list[str] = []
        site.when(4, lambda: uids.append(site.world.server.get(DEPLOYMENTS, WEB)["metadata"]["uid"]))
        await play_live(site.cluster, a_scenario({"at": "5s", "apply": a_workload(replicas=1)}), OWN_NODES, site.say)
        assert len(asked) == conflicts + 1
        for body, version in zip(asked, versions, strict=True):
            of_uid, of_version, of_fields = body.body
            assert of_uid == {"op": "test", "path": "/metadata/uid", "value": uids[0]}
            assert of_version == {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
            assert (of_fields["op"], of_fields["path"]) == ("replace", "/metadata/managedFields")
            own = [entry for entry in of_fields["value"] if entry["manager"] == body.manager]
            assert [entry["operation"] for entry in own] == ["Apply"]
            assert "f:template" in own[0]["fieldsV1"]["f:spec"]

    play_in_live_world(run)


def test_a_node_falls_silent_is_missed_and_comes_back_where_kubelets_can() -> None:
    async def run(site: LiveWorld) -> None:
        entries: list[Document] = [{"at": "3s", "notReady": "own-1"}, {"at": "100s", "ready": "own-1"}]
        assert "node own-1 has another" in await refusal_of(site, *entries)
        site.has_hollow_kubelets = True
        story = await play_live(site.cluster, a_scenario(*entries, until="5m"), OWN_NODES, site.say)
        assert texts_of(story, "node own-1") == ["not ready", "ready"]

    play_in_live_world(run)


def test_a_node_is_killed_and_only_the_run_made_it() -> None:
    async def run(site: LiveWorld) -> None:
        site.add_nodes("another")
        story = await play_live(site.cluster, a_scenario({"at": "3s", "kill": "own-1"}), OWN_NODES, site.say)
        assert texts_of(story, "node own-1") == ["gone"]
        assert (story.nodes.start, story.nodes.end) == (2, 1), "those of the scenario"
        assert site.names("Node") == ["another"]

    play_in_live_world(run)


def test_nodes_and_namespaces_of_the_run_may_be_changed_and_deleted() -> None:
    node, namespace = {"kind": "Node", "name": "own-1"}, {"kind": "Namespace", "name": "shop"}
    seen: list[Document] = []

    async def run(site: LiveWorld) -> None:
        label = {"metadata": {"labels": {"disk": "ssd"}}}
        site.when(5, lambda: seen.append(site.world.server.get(NODES, Key("", "own-1"))))
        story = await play_live(
            site.cluster,
            a_scenario(
                {"at": "3s", "patch": {**node, "patch": label}},
                {"at": "10s", "delete": node},
                {"at": "20s", "delete": namespace},
            ),
            OWN_NODES,
            site.say,
        )
        assert seen[0]["metadata"]["labels"]["disk"] == "ssd"
        assert (story.nodes.start, story.nodes.end) == (2, 1)
        assert "Deployment deleted" in texts_of(story, "shop/web")
        assert len(site.messages) == 1

    play_in_live_world(run)


def test_nodes_that_no_kubelet_takes_up_end_the_run() -> None:
    async def run(site: LiveWorld) -> None:
        nodes = [{"name": "own-1", "annotations": {SILENT: "true"}}]
        assert "the nodes were not ready within 60 s" in await refusal_of(site, nodes=nodes)
        assert site.names("Node") == []

    play_in_live_world(run)


def test_a_namespace_without_an_account_ends_the_run() -> None:
    async def run(site: LiveWorld) -> None:
        site.makes_accounts = False
        assert "namespace shop got no default ServiceAccount" in await refusal_of(site)
        assert "shop" not in site.names("Namespace")

    play_in_live_world(run)


def test_what_the_api_server_refuses_is_said_with_its_place() -> None:
    async def run(site: LiveWorld) -> None:
        wrong = a_workload(selector={"matchLabels": {"app": "another"}})
        assert "Deployment web: the API server refuses it" in await refusal_of(site, manifests=[wrong])
        assert site.names("Deployment") == []

    play_in_live_world(run)


# ---- refused before anything is changed


NOT_MADE_HERE = "is not of the scenario's making"
REFUSED: dict[str, tuple[Document, str]] = {
    "a fault": ({"at": "1s", "fault": {"type": "crash-after"}}, "faults strike embedded clusters only"),
    "usage": ({"at": "1s", "usage": {"node": "own-1", "cpu": 5}}, "a real cluster's usage is measured"),
    "another's Deployment": ({"at": "1s", "delete": {"kind": "Deployment", "name": "api"}}, NOT_MADE_HERE),
    "another's Namespace": ({"at": "1s", "delete": {"kind": "Namespace", "name": "kube-system"}}, NOT_MADE_HERE),
    "another's Node": ({"at": "1s", "delete": {"kind": "Node", "name": "n1"}}, NOT_MADE_HERE),
    "another's Pod": ({"at": "1s", "delete": {"kind": "Pod", "name": "web-0"}}, NOT_MADE_HERE),
    "a cordon elsewhere": ({"at": "1s", "cordon": "n1"}, "is not among the scenario's nodes"),
    "a drain elsewhere": ({"at": "1s", "drain": "n1"}, "is not among the scenario's nodes"),
    "a loss elsewhere": ({"at": "1s", "kill": "n1"}, "would be lost for real"),
}


@pytest.mark.parametrize("title", REFUSED)
def test_a_plan_refuses_what_could_not_be_taken_back(title: str) -> None:
    entry, expected = REFUSED[title]

    async def run(site: LiveWorld) -> None:
        assert expected in await refusal_of(site, entry)
        assert (site.names("Deployment"), site.names("Node")) == ([], [])

    play_in_live_world(run)


def test_a_plan_refuses_what_is_there_already_and_nodes_that_are_not() -> None:
    async def run(site: LiveWorld) -> None:
        site.add_namespace()
        site.world.server.create(DEPLOYMENTS, a_workload(), "shop")
        assert "Deployment shop/web exists already" in await refusal_of(site)
        assert "the cluster has no node own-1, own-2" in await refusal_of(site, options=Options(), manifests=[])
        site.add_nodes("own-1")
        assert "node own-1 exists already" in await refusal_of(site, manifests=[])
        labelled = [{"name": "own-1", "labels": {"disk": "ssd"}}]
        message = await refusal_of(site, options=Options(), manifests=[], nodes=labelled)
        assert "node own-1 lacks the label disk=ssd" in message
        namespace: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        assert "Namespace shop exists already" in await refusal_of(site, manifests=[namespace])

    play_in_live_world(run)


def test_losing_a_node_that_was_there_before_is_refused() -> None:
    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        for entry in ("kill", "notReady", "ready"):
            message = await refusal_of(site, {"at": "1s", entry: "own-1"}, options=Options())
            assert "would be lost for real" in message

    play_in_live_world(run)


def test_selected_nodes_are_those_of_the_run_or_the_plan_refuses() -> None:
    async def run(site: LiveWorld) -> None:
        zoned = [{"namePrefix": "own-", "count": 2, "labels": {"topology.kubernetes.io/zone": "a"}}]
        drain: Document = {"at": "3s", "drain": {"zone": "a"}}
        story = await play_live(site.cluster, a_scenario(drain, nodes=zoned), OWN_NODES, site.say)
        drained = [event.subject for event in story.events if event.text == "drain begins"]
        assert drained == ["node own-1", "node own-2"]
        site.add_nodes("own-1", "own-2", "another")
        everything: Document = {"at": "1s", "cordon": {"selector": {}}}
        assert 'selects node "another", which is not among the' in await refusal_of(site, everything, options=Options())
        for entry in ("kill", "notReady", "ready", "lose"):
            selected: Document = {"at": "1s", entry: {"selector": {"matchLabels": {"pool": "spot"}}}}
            message = await refusal_of(site, selected, options=Options())
            assert "nodes with pool=spot would be lost for real" in message

    play_in_live_world(run)


# ---- own by label


def test_own_pods_may_be_deleted_by_name_and_others_of_that_prefix_may_not() -> None:
    stateful = a_workload("StatefulSet", serviceName="web")

    def delete(name: str) -> Document:
        return {"at": "5s", "delete": {"kind": "Pod", "name": name, "namespace": "shop"}}

    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        site.add_namespace()
        site.world.server.create(PODS, {"metadata": {"name": "web-frontend-0"}, "spec": TEMPLATE["spec"]}, "shop")
        story = await play_live(site.cluster, a_scenario(delete("web-0"), manifests=[stateful]), Options(), site.say)
        assert "stopping" in texts_of(story, "shop/web")
        message = await refusal_of(site, delete("web-frontend-0"), options=Options(), manifests=[stateful])
        assert "Pod shop/web-frontend-0 is not of this run's making" in message
        assert site.names("Pod") == ["web-frontend-0"]
        message = await refusal_of(site, delete("webshop-0"), options=Options(), manifests=[stateful])
        assert NOT_MADE_HERE in message

    play_in_live_world(run)


def test_a_drain_leaves_pods_of_others_alone_whatever_their_names() -> None:
    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1")
        site.add_namespace()
        for name in ("web-frontend-7d4b9-abcde", "web", "webshop"):
            pod = {"metadata": {"name": name, "labels": {"app": "web-frontend"}}, "spec": TEMPLATE["spec"]}
            site.world.server.create(PODS, pod, "shop")
        await asyncio.sleep(5)
        uids = {pod["metadata"]["uid"] for pod in site.world.server.list(PODS).items}
        site.add_nodes("own-2")
        story = await play_live(site.cluster, a_scenario({"at": "5s", "drain": "own-1"}), Options(), site.say)
        assert story.workloads["shop/web"].per_node == {"own-2": 2}
        assert not any(event.subject.startswith("pod ") for event in story.events)
        after = site.world.server.list(PODS).items
        assert {pod["metadata"]["uid"] for pod in after} == uids
        assert all(pod["spec"]["nodeName"] == "own-1" for pod in after)
        assert not site.is_cordoned("own-1")

    play_in_live_world(run)


def test_everything_that_a_run_makes_carries_its_label() -> None:
    seen: list[Document] = []

    async def run(site: LiveWorld) -> None:
        kinds = (NODES, DEPLOYMENTS, REPLICA_SETS, PODS)
        site.when(2, lambda: seen.extend(document for kind in kinds for document in site.world.server.list(kind).items))
        await play_live(site.cluster, a_scenario(), OWN_NODES, site.say)
        assert len(seen) == 2 + 1 + 1 + 2
        assert len({document["metadata"]["labels"].get(RUN_LABEL) for document in seen}) == 1
        assert seen[0]["metadata"]["labels"][RUN_LABEL]

    play_in_live_world(run)


def test_templates_of_pods_jobs_and_claims_are_labelled_and_the_document_itself_is_not_changed() -> None:
    template: Document = {"spec": {"containers": []}}
    document: Document = {
        "metadata": {"name": "web"},
        "spec": {
            "template": template,
            "jobTemplate": {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        },
    }
    labelled = label_document(document, "r1")
    spec, label = labelled["spec"], {RUN_LABEL: "r1"}
    assert labelled["metadata"] == {"name": "web", "labels": label}
    assert spec["template"]["metadata"]["labels"] == label
    assert spec["jobTemplate"]["metadata"]["labels"] == label
    assert spec["jobTemplate"]["spec"]["template"]["metadata"]["labels"] == {"a": "b", **label}
    assert spec["volumeClaimTemplates"] == [{"metadata": {"name": "data", "labels": label}}]
    assert "metadata" not in template
    assert label_document({"metadata": {"name": "x"}}, "r1") == {"metadata": {"name": "x", "labels": label}}


def test_only_what_was_created_here_is_handed_to_who_applies() -> None:
    created = {"manager": "wukong", "operation": "Update", "fieldsV1": {"f:spec": {}}}
    status = {"manager": "wukong", "operation": "Update", "subresource": "status"}
    kubectl = {"manager": "kubectl", "operation": "Update"}
    document: Document = {"metadata": {"managedFields": [kubectl, created, status]}}
    applied = {**created, "manager": "scenario", "operation": "Apply"}
    assert fields_to_apply(document, "scenario") == [applied, kubectl, status]
    assert fields_to_apply({"metadata": {"managedFields": [applied, kubectl, status]}}, "scenario") is None
    assert fields_to_apply({"metadata": {}}, "scenario") is None


# ---- what appears meanwhile


def test_a_budget_that_appeared_meanwhile_is_neither_overwritten_nor_deleted() -> None:
    theirs: Document = {**BUDGET, "spec": {**BUDGET["spec"], "minAvailable": 2}}  # type: ignore[dict-item]

    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        site.add_namespace()
        site.when(3, lambda: site.world.server.create(POD_DISRUPTION_BUDGETS, theirs, "shop"))
        message = await refusal_of(site, {"at": "5s", "apply": BUDGET}, options=Options())
        assert "PodDisruptionBudget shop/web is not of this run's making" in message
        kept = site.world.server.get(POD_DISRUPTION_BUDGETS, WEB)
        assert kept["spec"]["minAvailable"] == 2
        assert site.names("Deployment") == []

    play_in_live_world(run)


def test_a_namespace_that_appeared_meanwhile_stays_with_all_its_pods() -> None:
    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        create = site.cluster.create

        async def create_late(resource: Any, body: Document, namespace: str = "") -> Document:
            if site.find(resource, Key("", "shop")) is None and body["metadata"]["name"] == "shop":
                site.add_namespace()
                site.world.server.create(PODS, {"metadata": {"name": "theirs"}, "spec": TEMPLATE["spec"]}, "shop")
            return await create(resource, body, namespace)

        site.cluster.create = create_late  # type: ignore[method-assign]
        assert "Namespace shop was made by somebody else meanwhile" in await refusal_of(site, options=Options())
        assert site.names("Pod") == ["theirs"]
        assert "shop" in site.names("Namespace")

    play_in_live_world(run)


@pytest.mark.parametrize(
    "entry",
    [
        {"delete": {"kind": "Deployment", "name": "web", "namespace": "shop"}},
        {"scale": {"kind": "Deployment", "name": "web", "namespace": "shop", "replicas": 5}},
        {"patch": {"kind": "Deployment", "name": "web", "namespace": "shop", "patch": {"spec": {"replicas": 5}}}},
        {"apply": a_workload(replicas=5)},
    ],
)
def test_what_somebody_put_in_the_place_of_ours_is_left_alone(entry: Document) -> None:
    async def run(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        site.add_namespace()

        def replace() -> None:
            site.world.server.delete(DEPLOYMENTS, WEB)
            site.world.server.create(DEPLOYMENTS, a_workload(replicas=1), "shop")

        site.when(3, replace)
        message = await refusal_of(site, {"at": "5s", **entry}, options=Options())
        assert "Deployment shop/web is not of this run's making" in message
        assert site.world.server.get(DEPLOYMENTS, WEB)["spec"]["replicas"] == 1

    play_in_live_world(run)


def test_a_timeline_that_deletes_what_is_gone_says_so() -> None:
    web = {"kind": "Deployment", "name": "web", "namespace": "shop"}

    async def run(site: LiveWorld) -> None:
        message = await refusal_of(site, {"at": "3s", "delete": web}, {"at": "5s", "delete": web})
        assert "$.timeline[1].delete: there is no Deployment shop/web" in message

    play_in_live_world(run)


# ---- what counts as a change


def test_versions_times_and_messages_pass_and_everything_else_lasts() -> None:
    def node(version: str = "1", *, label: str = "a", status: str = "True", heartbeat: str = "t1") -> Any:
        condition = {"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat, "message": heartbeat}
        meta = {"name": "n", "resourceVersion": version, "labels": {"x": label}}
        return objects.read("Node", {"metadata": meta, "spec": {}, "status": {"conditions": [condition]}})

    assert lasting_part_of(node()) == lasting_part_of(node("2", heartbeat="t2"))
    assert lasting_part_of(node()) != lasting_part_of(node(label="b"))
    times = ("lastProbeTime", "lastUpdateTime", "lastTransitionTime")
    passing = objects.read(
        "Node",
        {
            "metadata": {"name": "n"},
            "status": {"conditions": [{"type": "Ready", "status": "True"} | dict.fromkeys(times, "t1")]},
        },
    )
    assert lasting_part_of(passing)[2] == {"conditions": [{"type": "Ready", "status": "True"}]}
    for lasting in ({"annotations": {"a": "b"}}, {"deletionTimestamp": "2026-11-16T12:00:00Z"}, {"generation": 2}):
        assert lasting_part_of(objects.read("Node", {"metadata": {"name": "n", **lasting}}))[0] == lasting
    assert lasting_part_of(node()) != lasting_part_of(node(status="False"))
    assert lasting_part_of(None) == ({}, None, {"conditions": []})
