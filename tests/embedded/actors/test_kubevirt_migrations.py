"""Evictions of virtual machines, and the migrations that follow: who moves, who waits, who is started again."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, add_node, merge
from embedded.actors.machine_world import (
    a_machine_world,
    add_machine,
    condition_of,
    instance_of,
    launchers_of,
    machine_of,
    node_of,
    phase_of,
    run_machine,
    running_launchers_of,
    word_of,
)
from wukong.api.kinds import (
    NODES,
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from wukong.api.resources import Key
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.world import World
from wukong.errors import Invalid, TooManyRequests
from wukong.ports import Document, PatchBody

WEBHOOK = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: '
TRIGGERED = WEBHOOK + 'Eviction triggered evacuation of VMI "shop/web"'
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
BRIDGE = {"memory": {"guest": "1Gi"}, "devices": {"interfaces": [{"name": "default", "bridge": {}}]}}


def evict(world: World, pod: Document) -> str:
    """Evict a pod. Returns what the server answers, nothing if it was evicted."""
    try:
        world.server.evict(Key(NAMESPACE, pod["metadata"]["name"]))
    except TooManyRequests as refusal:
        return str(refusal) if refusal.retry_after is None else "to be repeated later"
    return ""


def migrations_of(world: World) -> list[Document]:
    return world.server.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS).items


def migration_phases(world: World) -> list[str]:
    return [value_at(migration, "status.phase") or "" for migration in migrations_of(world)]


def cordon(world: World, node: str) -> None:
    world.server.patch(NODES, Key("", node), PatchBody("merge", {"spec": {"unschedulable": True}}))


def migrate(world: World, name: str = "web") -> str:
    body = {"metadata": {"generateName": "move-"}, "spec": {"vmiName": name}}
    created = world.server.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, NAMESPACE)
    return str(created["metadata"]["name"])


def test_an_evicted_machine_migrates_and_its_eviction_is_answered_429() -> None:
    world = run_machine()
    (source,) = launchers_of(world)
    before, node = instance_of(world), node_of(world)
    assert evict(world, source) == TRIGGERED
    assert evict(world, source) == WEBHOOK + 'Evacuation in progress: Eviction triggered evacuation of VMI "shop/web"'
    world.run(lambda _: condition_of(instance_of(world), "EvictionRequested") != {})
    world.run(lambda _: word_of(world) == "Migrating")
    (target,) = [pod for pod in launchers_of(world) if pod["metadata"]["uid"] != source["metadata"]["uid"]]
    assert evict(world, target).endswith('VMI "shop/web"')
    assert world.run() == "quiet"
    after = instance_of(world)
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert node_of(world) == target["spec"]["nodeName"] != node
    assert word_of(world) == "Running"
    assert (machine_of(world)["status"]["ready"], migration_phases(world)) == (True, ["Succeeded"])
    assert "evacuationNodeName" not in after["status"]
    assert condition_of(after, "EvictionRequested") == {}
    ended = world.server.get(PODS, Key(NAMESPACE, source["metadata"]["name"]))
    assert ended["status"]["phase"] == "Succeeded"
    assert evict(world, ended) == ""
    world.run()
    assert len(launchers_of(world)) == 1


def test_the_target_of_a_migration_is_not_to_be_evicted() -> None:
    world = run_machine()
    migrate(world)
    world.run(lambda _: len(running_launchers_of(world)) == 2)
    (target,) = [pod for pod in launchers_of(world) if "kubevirt.io/migrationJobUID" in pod["metadata"]["labels"]]
    assert evict(world, target) == WEBHOOK + "Eviction request for target Pod"


def test_a_migration_lasts_by_the_guests_memory_and_runs_through_its_phases() -> None:
    world = run_machine(memory="4Gi")
    evict(world, launchers_of(world)[0])
    began = world.clock.now()
    world.run(lambda _: migration_phases(world) == ["Succeeded"])
    assert 40 < world.clock.now() - began < 43
    (migration,) = migrations_of(world)
    assert [entry["phase"] for entry in migration["status"]["phaseTransitionTimestamps"]] == [
        *("Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded")
    ]


def test_the_target_pod_keeps_away_from_its_own_machine_and_keeps_the_cpu_model() -> None:
    world = run_machine(affinity=APART)
    evict(world, launchers_of(world)[0])
    world.run()
    (target,) = running_launchers_of(world)
    required = target["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    instance = instance_of(world)
    assert instance is not None
    assert required == [
        *APART["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"],
        {
            "labelSelector": {"matchLabels": {"kubevirt.io/created-by": instance["metadata"]["uid"]}},
            "topologyKey": "kubernetes.io/hostname",
        },
    ]
    assert target["spec"]["nodeSelector"]["cpu-model-migration.node.kubevirt.io/hollow"] == "true"


@pytest.mark.parametrize(
    ("strategy", "domain", "answer"),
    [
        ("LiveMigrate", BRIDGE, "VMI web is configured with an eviction strategy but is not live-migratable"),
        ("LiveMigrateIfPossible", BRIDGE, ""),
        ("None", None, ""),
        (None, None, ""),
        ("External", None, 'Eviction triggered evacuation of VMI "shop/web"'),
    ],
)
def test_the_answer_to_an_eviction_follows_from_the_strategy(
    strategy: str | None, domain: Document | None, answer: str
) -> None:
    world = a_machine_world()
    spec: dict[str, Any] = {"domain": domain} if domain is not None else {}
    add_machine(world, evictionStrategy=strategy, **spec)
    world.run()
    before = instance_of(world)
    assert evict(world, launchers_of(world)[0]) == (WEBHOOK + answer if answer else "")
    world.run(seconds=120)
    after = instance_of(world)
    assert before is not None
    assert after is not None
    assert migrations_of(world) == []
    assert (before["metadata"]["uid"] == after["metadata"]["uid"]) == bool(answer)
    assert word_of(world) == "Running"
    assert after["status"].get("evacuationNodeName", "") == (node_of(world) if strategy == "External" else "")


def test_no_more_than_two_leave_a_node_at_a_time() -> None:
    world = a_machine_world(1)
    for number in range(5):
        add_machine(world, f"m{number}")
    world.run()
    add_node(world, "n1")
    cordon(world, "n0")
    began = world.clock.now()
    for number in range(5):
        evict(world, launchers_of(world, f"m{number}")[0])
    most = 0
    while any(node_of(world, f"m{number}") == "n0" for number in range(5)):
        world.run(seconds=0.5)
        assert world.clock.now() - began < 60
        most = max(most, sum(phase not in ("", "Pending", "Succeeded") for phase in migration_phases(world)))
    assert most == 2
    assert world.clock.now() - began > 30
    assert all(word_of(world, f"m{number}") == "Running" for number in range(5))


def test_no_more_than_five_migrate_in_the_cluster_at_a_time() -> None:
    world = a_machine_world(4)
    for number in range(8):
        add_machine(world, f"m{number}", nodeSelector={"kubernetes.io/hostname": f"n{number % 4}"})
    world.run()
    for number in range(8):
        merge(world, VIRTUAL_MACHINE_INSTANCES, f"m{number}", {"spec": {"nodeSelector": None}})
        evict(world, launchers_of(world, f"m{number}")[0])
    world.run(seconds=3)
    assert sum(phase not in ("", "Pending", "Succeeded") for phase in migration_phases(world)) == 5


def test_as_many_machines_as_nodes_that_keep_apart_cannot_migrate_until_a_node_comes() -> None:
    world = a_machine_world(3)
    for number in range(3):
        add_machine(world, f"m{number}", affinity=APART)
    world.run()
    node = node_of(world, "m0")
    evict(world, launchers_of(world, "m0")[0])
    world.run(seconds=60)
    assert migration_phases(world) == ["Scheduling"]
    assert (word_of(world, "m0"), node_of(world, "m0")) == ("Running", node)
    add_node(world, "n9")
    world.run(seconds=30)
    assert (migration_phases(world), node_of(world, "m0")) == (["Succeeded"], "n9")


def test_a_target_that_finds_no_node_is_given_up_after_five_minutes_and_tried_again_after_a_pause() -> None:
    world = run_machine(1)
    evict(world, launchers_of(world)[0])
    began = world.clock.now()
    world.run(lambda _: "Failed" in migration_phases(world))
    assert 300 <= world.clock.now() - began < 303
    world.run(lambda _: migration_phases(world).count("Scheduling") == 1)
    assert 320 <= world.clock.now() - began < 325
    world.run(lambda _: migration_phases(world).count("Failed") == 2)
    failed = world.clock.now()
    world.run(lambda _: "Scheduling" in migration_phases(world))
    assert 39 <= world.clock.now() - failed < 44
    assert word_of(world) == "Running"


@pytest.mark.parametrize(
    ("name", "value", "seconds", "reason"),
    [
        ("migration-seconds", "200", 150, "not completed after 150 seconds"),
        ("migration-fails", "true", 10, "to fail"),
    ],
)
def test_a_migration_that_is_too_slow_or_breaks_fails_and_the_machine_stays(
    name: str, value: str, seconds: int, reason: str
) -> None:
    world = run_machine(annotations={f"sim.novasphere.dev/{name}": value})
    node = node_of(world)
    migrate(world)
    began = world.clock.now()
    world.run(lambda _: migration_phases(world) == ["Failed"])
    assert seconds < world.clock.now() - began < seconds + 3
    assert world.run() == "quiet"
    assert (word_of(world), node_of(world)) == ("Running", node)
    assert reason in value_at(instance_of(world) or {}, "status.migrationState.failureReason")
    assert len(running_launchers_of(world)) == 1


def test_a_target_pod_that_dies_fails_the_migration() -> None:
    world = run_machine()
    node = node_of(world)
    migrate(world)
    world.run(lambda _: word_of(world) == "Migrating")
    (target,) = [pod for pod in running_launchers_of(world) if pod["spec"]["nodeName"] != node]
    world.server.delete(PODS, Key(NAMESPACE, target["metadata"]["name"]))
    assert world.run() == "quiet"
    assert (migration_phases(world), word_of(world), node_of(world)) == (["Failed"], "Running", node)


def test_a_migration_that_is_deleted_is_cancelled() -> None:
    world = run_machine(memory="8Gi")
    node = node_of(world)
    for seconds in (0.1, 0.4, 20):
        name = migrate(world)
        world.run(seconds=seconds)
        world.server.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, Key(NAMESPACE, name))
        assert world.run() == "quiet"
        assert (migrations_of(world), word_of(world), node_of(world)) == ([], "Running", node)
        assert len(running_launchers_of(world)) == 1


def test_the_drain_taint_migrates_without_evictions() -> None:
    world = run_machine()
    node = node_of(world)
    taint = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
    world.server.patch(NODES, Key("", node), PatchBody("merge", {"spec": {"taints": [taint]}}))
    world.run(seconds=30)
    assert (migration_phases(world), word_of(world)) == (["Succeeded"], "Running")
    assert node_of(world) != node


def test_a_machine_that_is_deleted_while_it_migrates_leaves_nothing() -> None:
    world = run_machine()
    migrate(world)
    world.run(lambda _: word_of(world) == "Migrating")
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Halted"}})
    assert world.run() == "quiet"
    assert (phase_of(world), launchers_of(world), migrations_of(world)) == (None, [], [])


def test_a_machine_on_a_lost_node_is_started_elsewhere_once_its_pod_is_gone() -> None:
    world = run_machine()
    node = node_of(world)
    world.server.delete(NODES, Key("", node))
    world.run(seconds=120)
    assert word_of(world) == "Running"
    assert node_of(world) != node


def test_a_machine_on_a_silent_node_waits_until_somebody_vouches_that_the_node_is_dead() -> None:
    world = run_machine()
    node = node_of(world)
    silent = {"metadata": {"annotations": {"sim.novasphere.dev/silent": "true"}}}
    world.server.patch(NODES, Key("", node), PatchBody("merge", silent))
    world.run(seconds=900)
    assert condition_of(instance_of(world), "Ready")["reason"] == "PodTerminating"
    assert node_of(world) == node
    assert world.server.get(NODES, Key("", node))["metadata"]["labels"]["kubevirt.io/schedulable"] == "false"
    taints = [*world.server.get(NODES, Key("", node))["spec"]["taints"]]
    taints.append({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"})
    world.server.patch(NODES, Key("", node), PatchBody("merge", {"spec": {"taints": taints}}))
    world.run(seconds=60)
    assert word_of(world) == "Running"
    assert node_of(world) != node
    world.server.patch(NODES, Key("", node), PatchBody("merge", {"metadata": {"annotations": None}}))
    world.run(seconds=60)
    assert world.server.get(NODES, Key("", node))["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"


def test_a_machine_migrates_again_and_back() -> None:
    world = run_machine(2)
    nodes = [node_of(world)]
    for _ in range(7):
        migrate(world)
        world.run()
        nodes.append(node_of(world))
    assert nodes == (["n0", "n1"] * 4 if nodes[0] == "n0" else ["n1", "n0"] * 4)
    assert migration_phases(world) == ["Succeeded"] * 5
    assert len(running_launchers_of(world)) == 1


def test_virt_api_refuses_migrations_that_cannot_be() -> None:
    world = run_machine()
    with pytest.raises(Invalid, match='the VMI "shop/other" does not exist'):
        migrate(world, "other")
    migrate(world)
    with pytest.raises(Invalid, match="in-flight migration detected"):
        migrate(world)
    world = run_machine(domain=BRIDGE)
    with pytest.raises(Invalid, match="Cannot migrate VMI, Reason: InterfaceNotLiveMigratable"):
        migrate(world)
