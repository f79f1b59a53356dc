"""What a run did to a cluster is taken back, exactly and however it ends; what others did meanwhile stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from app.live_world import TEMPLATE, LiveWorld, a_scenario, a_workload, play_in_live_world
from wukong.api.kinds import DEPLOYMENTS, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from wukong.api.resources import Key, Resource
from wukong.app.sim_live import Options, play_live
from wukong.app.sim_live.ownership import RUN_LABEL
from wukong.app.sim_live.plan import Plan
from wukong.app.sim_live.watch_source import _is_covered
from wukong.errors import ClusterError, Conflict, InputError, OutcomeUnknown, ServerFailed
from wukong.ports import Document, PatchBody

OWN_NODES = Options(create_nodes=True)
WEB = Key("shop", "web")


def a_shop(*cordoned: str) -> Callable[[LiveWorld], None]:
    """Nodes own-1 and own-2 and the namespace are there before."""

    def prepare(site: LiveWorld) -> None:
        site.add_nodes("own-1", "own-2")
        site.add_namespace()
        for name in cordoned:
            site.cordon(name)

    return prepare


def assert_nothing_is_left(site: LiveWorld) -> None:
    assert (site.names("Deployment"), site.names("ReplicaSet"), site.names("Pod")) == ([], [], [])


# ---- cordons


def test_a_node_that_the_run_cordoned_is_uncordoned() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        seen: list[bool] = []
        site.when(5, lambda: seen.append(site.is_cordoned("own-1")))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert seen == [True]
        assert not site.is_cordoned("own-1")
        assert len(site.messages) == 1

    play_in_live_world(run)


@pytest.mark.parametrize("entry", ["cordon", "drain"])
@pytest.mark.parametrize("seconds", [None, 2.0])
def test_a_node_that_an_admin_cordoned_stays_cordoned(entry: str, seconds: float | None) -> None:
    """Before the run, or during it and before the run's turn has come."""

    async def run(site: LiveWorld) -> None:
        a_shop(*(["own-1"] if seconds is None else []))(site)
        if seconds is not None:
            site.when(seconds, lambda: site.cordon("own-1"))
        await play_live(site.cluster, a_scenario({"at": "5s", entry: "own-1"}), Options(), site.say)
        assert site.is_cordoned("own-1")
        assert not site.is_cordoned("own-2")
        assert_nothing_is_left(site)

    play_in_live_world(run)


def test_a_cordon_that_somebody_made_after_the_runs_own_stays_and_is_said() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        site.when(5, lambda: site.cordon("own-1", False))
        site.when(6, lambda: site.cordon("own-1"))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert site.is_cordoned("own-1")
        assert site.messages[1:] == ["not taken back: Node own-1 was cordoned by somebody else meanwhile, and stays so"]

    play_in_live_world(run)


def test_a_cordon_of_a_node_that_the_run_never_touched_stays() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        site.when(4, lambda: site.cordon("own-2"))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert (site.is_cordoned("own-1"), site.is_cordoned("own-2")) == (False, True)

    play_in_live_world(run)


def test_a_node_that_the_run_uncordoned_is_cordoned_again() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop("own-1")(site)
        seen: list[bool] = []
        site.when(5, lambda: seen.append(site.is_cordoned("own-1")))
        await play_live(site.cluster, a_scenario({"at": "3s", "uncordon": "own-1"}), Options(), site.say)
        assert seen == [False]
        assert site.is_cordoned("own-1")

    play_in_live_world(run)


def test_a_node_that_somebody_uncordoned_stays_schedulable() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop("own-1")(site)
        site.when(6, lambda: site.cordon("own-1", False))
        entries: list[Document] = [{"at": "3s", "uncordon": "own-1"}, {"at": "5s", "cordon": "own-1"}]
        await play_live(site.cluster, a_scenario(*entries), Options(), site.say)
        assert not site.is_cordoned("own-1")
        assert "was uncordoned by somebody else meanwhile" in site.messages[-1]

    play_in_live_world(run)


def test_the_cordon_of_a_node_of_the_runs_own_is_nobodys_business() -> None:
    async def run(site: LiveWorld) -> None:
        site.when(5, lambda: site.cordon("own-1", False))
        site.when(6, lambda: site.cordon("own-1"))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), OWN_NODES, site.say)
        assert (len(site.messages), site.names("Node")) == (1, [])

    play_in_live_world(run)


def test_a_node_that_was_replaced_meanwhile_is_another_node() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)

        def replace() -> None:
            site.world.server.delete(NODES, Key("", "own-1"))
            site.add_nodes("own-1", unschedulable=True)

        site.when(5, replace)
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert site.is_cordoned("own-1")

    play_in_live_world(run)


def test_a_node_that_was_replaced_is_not_cordoned_as_the_one_before_it_was() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop("own-1")(site)

        def replace() -> None:
            site.world.server.delete(NODES, Key("", "own-1"))
            site.add_nodes("own-1")

        site.when(5, replace)
        await play_live(site.cluster, a_scenario({"at": "3s", "uncordon": "own-1"}), Options(), site.say)
        assert not site.is_cordoned("own-1")

    play_in_live_world(run)


def test_a_cordon_is_made_on_the_version_that_was_recorded() -> None:
    """An admin's cordon that comes between reading and writing is recorded, too."""

    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        patch_of_store, was_late = site.cluster.patch, list[str]()

        async def patch(resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
            if resource == NODES and not was_late:
                was_late.append(key.name)
                site.cordon(key.name)
            return await patch_of_store(resource, key, patch, subresource)

        site.cluster.patch = patch  # type: ignore[method-assign]
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert was_late == ["own-1"]
        assert site.is_cordoned("own-1")

    play_in_live_world(run)


def act_before_patch_of_nodes(site: LiveWorld, number: int, act: Callable[[], None]) -> None:
    """Have somebody act between the run's reading of a node and its writing: before the patch of this number."""
    patch_of_store, numbers = site.cluster.patch, count(1)

    async def patch(resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        if resource == NODES and next(numbers) == number:
            act()
        return await patch_of_store(resource, key, patch, subresource)

    site.cluster.patch = patch  # type: ignore[method-assign]


def test_a_cordon_that_comes_while_the_runs_own_is_taken_back_stays() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)

        def take_over() -> None:
            site.cordon("own-1", False)
            site.cordon("own-1")

        act_before_patch_of_nodes(site, 2, take_over)
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert site.is_cordoned("own-1")
        assert site.messages[1:] == ["not taken back: Node own-1 was cordoned by somebody else meanwhile, and stays so"]

    play_in_live_world(run)


def test_a_node_that_an_admin_uncordons_before_the_runs_write_arrives_stays_schedulable() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop("own-1")(site)
        act_before_patch_of_nodes(site, 1, lambda: site.cordon("own-1", False))
        await play_live(site.cluster, a_scenario({"at": "3s", "uncordon": "own-1"}), Options(), site.say)
        assert not site.is_cordoned("own-1")
        assert "was uncordoned by somebody else meanwhile" in site.messages[-1]

    play_in_live_world(run)


def test_a_node_that_changes_all_the_time_is_given_up_and_said() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        patch_of_store = site.cluster.patch
        is_sick = [True]

        async def patch(resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
            if resource == NODES and is_sick[0]:
                raise Conflict("it changed")
            return await patch_of_store(resource, key, patch, subresource)

        site.cluster.patch = patch  # type: ignore[method-assign]
        with pytest.raises(InputError, match="Node own-1 changed 20 times while it was to be cordoned"):
            await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        is_sick[0] = False
        site.when(5, lambda: is_sick.__setitem__(0, True))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert "Node own-1 changed 20 times while it was to be uncordoned" in site.messages[-1]

    play_in_live_world(run)


def test_a_node_that_is_gone_cannot_be_cordoned_and_needs_no_restoring() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        site.when(2, lambda: site.world.server.delete(NODES, Key("", "own-1")))
        with pytest.raises(InputError, match=r"\$.timeline\[0\].cordon: there is no Node own-1"):
            await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        site.add_nodes("own-1")
        site.when(5, lambda: site.world.server.delete(NODES, Key("", "own-1")))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert not any("not taken back" in message for message in site.messages)

    play_in_live_world(run)


# ---- objects


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 0.5, 1.0, 3.02, 3.5, 6.0])
@pytest.mark.parametrize("options", [OWN_NODES, Options()])
def test_a_run_that_is_interrupted_at_any_moment_leaves_nothing(seconds: float, options: Options) -> None:
    async def run(site: LiveWorld) -> None:
        if not options.create_nodes:
            site.add_nodes("own-1", "own-2")
        scenario = a_scenario({"at": "3s", "drain": "own-1"}, {"at": "5s", "cordon": "own-2"})
        playing = asyncio.ensure_future(play_live(site.cluster, scenario, options, site.say))
        await asyncio.sleep(seconds)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert_nothing_is_left(site)
        assert "shop" not in site.names("Namespace")
        nodes = [] if options.create_nodes else ["own-1", "own-2"]
        assert site.names("Node") == nodes
        assert not any(map(site.is_cordoned, nodes))

    play_in_live_world(run)


def test_a_write_that_is_on_its_way_when_the_run_is_interrupted_is_taken_back_too() -> None:
    async def run(site: LiveWorld) -> None:
        create, is_sent = site.cluster.create, asyncio.Event()

        async def create_slowly(resource: Resource, body: Document, namespace: str = "") -> Document:
            if resource == DEPLOYMENTS:
                is_sent.set()
                await asyncio.sleep(1)
            return await create(resource, body, namespace)

        site.cluster.create = create_slowly  # type: ignore[method-assign]
        a_shop()(site)
        playing = asyncio.ensure_future(play_live(site.cluster, a_scenario(), Options(), site.say))
        await is_sent.wait()
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert_nothing_is_left(site)

    play_in_live_world(run)


@pytest.mark.parametrize("happens", [True, False])
def test_what_was_created_without_an_answer_is_taken_back_and_nothing_else(happens: bool) -> None:
    async def run(site: LiveWorld) -> None:
        create, get = site.cluster.create, site.cluster.get
        is_cut = [False]

        async def create_without_answer(resource: Resource, body: Document, namespace: str = "") -> Document:
            if resource != DEPLOYMENTS:
                return await create(resource, body, namespace)
            is_cut[0] = True
            if happens:
                await create(resource, body, namespace)
            else:
                site.world.server.create(DEPLOYMENTS, a_workload(replicas=1), "shop")
            raise OutcomeUnknown("the connection broke")

        async def get_nothing(resource: Resource, key: Key, read: type[Any]) -> Any:
            if is_cut[0] and resource == DEPLOYMENTS:
                is_cut[0] = False
                raise ServerFailed("not now")
            return await get(resource, key, read)

        site.cluster.create, site.cluster.get = create_without_answer, get_nothing  # type: ignore[method-assign]
        a_shop()(site)
        with pytest.raises(InputError, match="no answer"):
            await play_live(site.cluster, a_scenario(), Options(), site.say)
        assert site.names("Deployment") == ([] if happens else ["web"])

    play_in_live_world(run)


def test_what_somebody_put_in_the_place_of_ours_is_not_deleted() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)

        def replace() -> None:
            site.world.server.delete(DEPLOYMENTS, WEB)
            site.world.server.create(DEPLOYMENTS, a_workload(replicas=1), "shop")

        site.when(4, replace)
        await play_live(site.cluster, a_scenario({"at": "8s", "cordon": "own-2"}), Options(), site.say)
        assert site.world.server.get(DEPLOYMENTS, WEB)["spec"]["replicas"] == 1

    play_in_live_world(run)


def test_claims_of_the_run_go_and_others_stay() -> None:
    claim: Document = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}

    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        server = site.world.server
        server.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data-web-9"}, **claim}, "shop")

        def claim_as_controllers_do() -> None:
            template = server.get(DEPLOYMENTS, WEB)["spec"]["template"]["metadata"]
            meta = {"name": "data-web-0", "labels": {RUN_LABEL: template["labels"][RUN_LABEL]}}
            server.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": meta, **claim}, "shop")

        site.when(2, claim_as_controllers_do)
        await play_live(site.cluster, a_scenario(), Options(), site.say)
        await asyncio.sleep(1)  # of the world's time: nobody uses the claim, so its protection ends
        assert site.names("PersistentVolumeClaim") == ["data-web-9"]

    play_in_live_world(run)


def test_a_pod_that_nobody_ends_is_ended_by_the_run() -> None:
    async def run(site: LiveWorld) -> None:
        site.has_hollow_kubelets = True
        await play_live(site.cluster, a_scenario({"at": "3s", "notReady": "own-1"}), OWN_NODES, site.say)
        assert_nothing_is_left(site)
        assert len(site.messages) == 1

    play_in_live_world(run)


def test_pods_that_have_a_kubelet_are_left_time_to_end() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        delete, at_once = site.cluster.delete, list[str]()

        async def record(resource: Resource, key: Key, **options: Any) -> None:
            at_once.extend([key.name] if resource == PODS and options.get("grace_seconds") == 0 else [])
            await delete(resource, key, **options)

        site.cluster.delete = record  # type: ignore[method-assign]
        await play_live(site.cluster, a_scenario(), Options(), site.say)
        assert_nothing_is_left(site)
        assert at_once == []

    play_in_live_world(run)


def test_a_run_that_keeps_leaves_everything_but_not_what_others_made() -> None:
    async def run(site: LiveWorld) -> None:
        options = Options(create_nodes=True, keep=True)
        await play_live(site.cluster, a_scenario(), options, site.say)
        assert "makes there what stays" in site.messages[0]
        assert site.names("Node") == ["own-1", "own-2"]
        assert len(site.names("Pod")) == 2

    play_in_live_world(run)


def test_what_cannot_be_removed_is_said_and_the_rest_is_removed() -> None:
    async def run(site: LiveWorld) -> None:
        delete = site.cluster.delete

        async def refuse(resource: Resource, key: Key, **options: Any) -> None:
            if resource == NODES and key.name == "own-1":
                raise ServerFailed("no")
            await delete(resource, key, **options)

        site.cluster.delete = refuse  # type: ignore[method-assign]
        await play_live(site.cluster, a_scenario(), OWN_NODES, site.say)
        assert site.messages[1:] == [
            "not taken back: Node own-1: no",
            "not taken back: Node own-1 is still there",
        ]
        assert site.names("Node") == ["own-1"]

    play_in_live_world(run)


def test_what_cannot_be_restored_or_looked_for_is_said() -> None:
    """Each call that fails has its own message, and the others are made all the same."""

    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        patch_of_store, list_of_store, is_sick = site.cluster.patch, site.cluster.list, [False]

        async def patch(resource: Resource, *arguments: Any, **options: Any) -> Document:
            if resource == NODES and is_sick[0]:
                raise ServerFailed("not now")
            return await patch_of_store(resource, *arguments, **options)

        async def list_objects(resource: Resource, read: Any, *arguments: Any, **options: Any) -> Any:
            if is_sick[0] and resource in (PODS, PERSISTENT_VOLUME_CLAIMS) and read is dict:
                raise ServerFailed("not now")
            return await list_of_store(resource, read, *arguments, **options)

        site.cluster.patch, site.cluster.list = patch, list_objects  # type: ignore[method-assign]
        site.when(5, lambda: is_sick.__setitem__(0, True))
        await play_live(site.cluster, a_scenario({"at": "3s", "cordon": "own-1"}), Options(), site.say)
        assert site.messages[1:] == [
            "not taken back: the cordon of Node own-1: not now",
            "not taken back: Pod of the run: not now",
            "not taken back: PersistentVolumeClaim of the run: not now",
        ]
        assert_nothing_is_left(site)

    play_in_live_world(run)


def test_what_may_have_been_created_and_cannot_be_looked_for_is_said() -> None:
    async def run(site: LiveWorld) -> None:
        get, is_cut = site.cluster.get, [False]

        async def lose_the_answer(resource: Resource, body: Document, namespace: str = "") -> Document:
            is_cut[0] = True
            raise OutcomeUnknown("the connection broke")

        async def get_nothing(resource: Resource, key: Key, read: type[Any]) -> Any:
            if is_cut[0]:
                raise ServerFailed("not now")
            return await get(resource, key, read)

        a_shop()(site)
        site.cluster.create, site.cluster.get = lose_the_answer, get_nothing  # type: ignore[method-assign]
        with pytest.raises(InputError, match="no answer"):
            await play_live(site.cluster, a_scenario(), Options(), site.say)
        assert site.messages[1:] == ["not taken back: Deployment shop/web: not now"]

    play_in_live_world(run)


def test_the_rest_is_removed_when_the_cluster_cannot_be_followed_any_more() -> None:
    async def run(site: LiveWorld) -> None:
        watch = site.cluster.watch
        is_broken = [False]

        def watch_while_it_works(*arguments: Any, **options: Any) -> Any:
            if is_broken[0]:
                raise RuntimeError("gone for good")
            return watch(*arguments, **options)

        def break_all() -> None:
            is_broken[0] = True
            site.cluster.end_watches()

        site.cluster.watch = watch_while_it_works  # type: ignore[method-assign]
        a_shop()(site)
        site.when(4, break_all)
        scenario = a_scenario({"at": "3s", "cordon": "own-1"}, {"at": "6s", "cordon": "own-2"})
        with pytest.raises(RuntimeError, match="gone for good"):
            await play_live(site.cluster, scenario, Options(), site.say)
        assert site.names("Deployment") == []
        assert not site.is_cordoned("own-1")
        assert site.messages[1:] == [
            "not taken back: nobody waited for what was removed, "
            "for the cluster cannot be followed any more: gone for good"
        ]

    play_in_live_world(run)


def test_a_cluster_that_cannot_be_read_is_given_up_before_anything_is_made() -> None:
    async def run(site: LiveWorld) -> None:
        async def refuse(*arguments: Any, **options: Any) -> Any:
            raise ServerFailed("not today")

        a_shop()(site)
        site.cluster.list = refuse  # type: ignore[method-assign]
        with pytest.raises(ClusterError, match="could not be read within 60 s"):
            await play_live(site.cluster, a_scenario(), Options(), site.say)
        assert site.names("Deployment") == []

    play_in_live_world(run)


def test_pods_of_others_in_a_namespace_that_was_there_before_stay() -> None:
    async def run(site: LiveWorld) -> None:
        a_shop()(site)
        pod = {"metadata": {"name": "web-0", "labels": {"app": "web"}}, "spec": TEMPLATE["spec"]}
        site.when(2, lambda: site.world.server.create(PODS, pod, "shop"))
        manifests = [a_workload("StatefulSet", name="web-set", serviceName="web")]
        await play_live(site.cluster, a_scenario(manifests=manifests), Options(), site.say)
        assert site.names("Pod") == ["web-0"]

    play_in_live_world(run)


@pytest.mark.parametrize(
    ("resource", "meta", "is_covered"),
    [
        (PODS, {"name": "web-frontend-1", "namespace": "shop"}, False),
        (PODS, {"name": "web-1", "namespace": "shop", "labels": {RUN_LABEL: "another"}}, False),
        (PODS, {"name": "any", "namespace": "shop", "labels": {RUN_LABEL: "run-1"}}, True),
        (PODS, {"name": "any", "namespace": "new"}, True),
        (NAMESPACES, {"name": "shop"}, True),
        (NAMESPACES, {"name": "other"}, False),
        (NODES, {"name": "own-1"}, True),
        (NODES, {"name": "own-2"}, False),
    ],
)
def test_the_story_is_about_what_carries_the_runs_label_whatever_its_name(
    resource: Resource, meta: dict[str, Any], is_covered: bool
) -> None:
    plan = Plan(
        documents=frozenset({("Deployment.apps", Key("shop", "web"))}),
        namespaces=frozenset({"shop", "new"}),
        new_namespaces=frozenset({"new"}),
        nodes=frozenset({"own-1"}),
        makes_nodes=False,
        run="run-1",
    )
    assert _is_covered(plan, resource, {"metadata": meta}) == is_covered
    everywhere = replace(plan, nodes=frozenset())
    assert _is_covered(everywhere, resource, {"metadata": meta}) == (is_covered or resource == NODES)
