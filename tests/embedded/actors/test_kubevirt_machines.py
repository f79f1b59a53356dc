"""The plain life of a virtual machine: its instance, its pod, its words, its restarts, its end."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, add_node, merge
from embedded.actors.machine_world import (
    a_machine,
    a_machine_world,
    add_machine,
    condition_of,
    instance_of,
    launchers_of,
    machine_of,
    node_of,
    phase_of,
    run_machine,
    word_of,
)
from wukong.api.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from wukong.api.resources import Key
from wukong.embedded.actors.kubevirt.launcher_resources import build_resources
from wukong.errors import Invalid
from wukong.ports import Document, PatchBody

OBSOLETE = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}


def test_a_machine_gets_an_instance_which_gets_a_pod_and_runs() -> None:
    world = run_machine()
    machine, instance, pods = machine_of(world), instance_of(world), launchers_of(world)
    assert instance is not None
    status = machine["status"]
    assert (status["printableStatus"], status["ready"], status["created"]) == ("Running", True, True)
    assert (status["observedGeneration"], status["desiredGeneration"]) == (1, 1)
    assert instance["status"]["phase"] == "Running"
    assert [entry["phase"] for entry in instance["status"]["phaseTransitionTimestamps"]] == [
        *("Pending", "Scheduling", "Scheduled", "Running")
    ]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]
    assert instance["status"]["nodeName"] == pods[0]["spec"]["nodeName"]
    assert instance["status"]["activePods"] == {pods[0]["metadata"]["uid"]: pods[0]["spec"]["nodeName"]}
    assert instance["metadata"]["labels"]["kubevirt.io/nodeName"] == pods[0]["spec"]["nodeName"]
    assert condition_of(instance, "LiveMigratable")["status"] == "True"
    assert condition_of(pods[0], "Ready")["status"] == "True"


def test_a_machine_is_ready_within_a_second_and_the_cluster_is_quiet_then() -> None:
    world = a_machine_world()
    add_machine(world)
    began = world.clock.now()
    assert world.run() == "quiet"
    assert word_of(world) == "Running"
    assert 0.3 < world.clock.now() - began < 1.2


@pytest.mark.parametrize(
    ("domain", "requests"),
    [
        ({"memory": {"guest": "512Mi"}}, {"cpu": "100m", "memory": "780Mi"}),
        ({"cpu": {"cores": 2}, "memory": {"guest": "1Gi"}}, {"cpu": "200m", "memory": "1300Mi"}),
        ({"cpu": {"cores": 10}, "memory": {"guest": "1Gi"}}, {"cpu": "1", "memory": "1364Mi"}),
        ({"cpu": {"sockets": 3, "cores": 5}, "memory": {"guest": "1Gi"}}, {"cpu": "1500m", "memory": "1404Mi"}),
        ({"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}, {"cpu": "2", "memory": "1302Mi"}),
        ({"memory": {"guest": "1Gi"}, "devices": {"gpus": [{"deviceName": "nvidia.com/A100"}]}}, {"memory": "2316Mi"}),
        (
            {"cpu": {"cores": 2, "dedicatedCpuPlacement": True}, "memory": {"guest": "1Gi"}},
            {"cpu": "2", "memory": "1400Mi"},
        ),
    ],
)
def test_a_pod_requests_the_guests_memory_and_an_overhead(domain: Document, requests: Document) -> None:
    resources = build_resources({"domain": domain})
    assert {name: resources["requests"][name] for name in requests} == requests
    assert resources["requests"]["ephemeral-storage"] == "50M"


def test_devices_are_requested_and_limited() -> None:
    interfaces = [{"name": "default", "masquerade": {}}]
    gpus = [{"name": "a", "deviceName": "nvidia.com/A100"}, {"name": "b", "deviceName": "nvidia.com/A100"}]
    domain = {"memory": {"guest": "1Gi"}, "devices": {"interfaces": interfaces, "gpus": gpus}}
    resources = build_resources({"domain": domain})
    devices = {"devices.kubevirt.io/kvm": "1", "devices.kubevirt.io/tun": "1", "devices.kubevirt.io/vhost-net": "1"}
    assert resources["limits"] == {**devices, "nvidia.com/A100": "2"}
    assert resources["limits"].items() <= resources["requests"].items()
    assert build_resources({"domain": domain}, emulates=True)["limits"] == {
        "devices.kubevirt.io/tun": "1",
        "nvidia.com/A100": "2",
    }


def test_what_the_template_says_about_scheduling_arrives_at_the_pod() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]},
    ]
    affinity = {"podAntiAffinity": {required: [term]}, "nodeAffinity": {required: {"nodeSelectorTerms": terms}}}
    toleration = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": term["labelSelector"],
    }
    world = run_machine(
        affinity=affinity,
        tolerations=[toleration],
        topologySpreadConstraints=[spread],
        nodeSelector={"kubernetes.io/hostname": "n0"},
        priorityClassName="system-cluster-critical",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=180,
    )
    (pod,) = launchers_of(world)
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    assert spec["affinity"]["podAntiAffinity"] == affinity["podAntiAffinity"]
    assert [
        entry["matchExpressions"][-1] for entry in spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    ] == [*(OBSOLETE, OBSOLETE)]
    assert toleration in spec["tolerations"]
    assert spec["topologySpreadConstraints"] == [spread]
    assert spec["nodeSelector"] == {
        "kubernetes.io/hostname": "n0",
        "kubevirt.io/schedulable": "true",
        "kubernetes.io/arch": "amd64",
        "machine-type.node.kubevirt.io/q35": "true",
    }
    assert (spec["priorityClassName"], spec["priority"]) == ("system-cluster-critical", 2000000000)
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Never", 210)
    assert spec["readinessGates"] == [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}]
    instance = instance_of(world)
    assert instance is not None
    assert labels["app"] == "web"
    assert labels["kubevirt.io"] == "virt-launcher"
    assert labels["kubevirt.io/created-by"] == instance["metadata"]["uid"]
    assert (labels["vm.kubevirt.io/name"], labels["vmi.kubevirt.io/id"]) == ("web", "web")
    assert pod["spec"]["nodeName"] == "n0"


def test_a_machine_without_a_fitting_node_says_so_and_comes_up_when_there_is_one() -> None:
    world = run_machine(nodeSelector={"disk": "ssd"})
    assert word_of(world) == "ErrorUnschedulable"
    assert phase_of(world) == "Scheduling"
    reason = condition_of(machine_of(world), "PodScheduled")
    assert (reason["status"], reason["reason"]) == ("False", "Unschedulable")
    assert "0/3 nodes are available" in reason["message"]
    add_node(world, "n9", disk="ssd")
    world.run(seconds=10)
    assert (word_of(world), node_of(world)) == ("Running", "n9")


def test_nodes_are_labelled_when_the_first_machine_comes_and_not_before() -> None:
    world = a_machine_world(1)
    before = world.server.get(NODES, Key("", "n0"))["metadata"]["labels"]
    assert "kubevirt.io/schedulable" not in before
    add_machine(world)
    world.run()
    add_node(world, "n1")
    world.run()
    for name in ("n0", "n1"):
        node = world.server.get(NODES, Key("", name))
        assert node["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"
        assert node["status"]["allocatable"]["devices.kubevirt.io/kvm"] == "1k"


def test_a_node_that_says_it_is_not_schedulable_for_kubevirt_carries_no_machine() -> None:
    world = a_machine_world(0)
    add_node(world, "n0", **{"kubevirt.io/schedulable": "false"})
    add_machine(world)
    world.run(seconds=5)
    assert word_of(world) == "ErrorUnschedulable"
    assert world.server.get(NODES, Key("", "n0"))["metadata"]["labels"]["kubevirt.io/schedulable"] == "false"


def test_where_nodes_have_virt_handlers_of_their_own_the_others_are_left_alone() -> None:
    world = a_machine_world(1)
    ours = {
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
        "kubernetes.io/arch": "amd64",
    }
    add_node(world, "virt", **ours)
    status = {"status": {"allocatable": {"devices.kubevirt.io/tun": "10", "ephemeral-storage": "9Gi"}}}
    world.server.patch(NODES, Key("", "virt"), PatchBody("merge", status), "status")
    world.run()
    add_machine(world)
    world.run(seconds=5)
    assert node_of(world) == "virt"
    assert "kubevirt.io/schedulable" not in world.server.get(NODES, Key("", "n0"))["metadata"]["labels"]
    assert "devices.kubevirt.io/kvm" not in launchers_of(world)[0]["spec"]["containers"][0]["resources"]["requests"]


@pytest.mark.parametrize(
    ("strategy", "word", "phase"),
    [
        ("Always", "Running", "Running"),
        ("RerunOnFailure", "Running", "Running"),
        ("Once", "Running", "Running"),
        ("Manual", "Stopped", None),
        ("Halted", "Stopped", None),
    ],
)
def test_a_new_machine_runs_as_its_strategy_says(strategy: str, word: str, phase: str | None) -> None:
    world = run_machine(strategy=strategy)
    assert (word_of(world), phase_of(world)) == (word, phase)


def test_a_manual_machine_starts_and_stops_on_request() -> None:
    world = run_machine(strategy="Manual")
    merge(world, VIRTUAL_MACHINES, "web", {"status": {"stateChangeRequests": [{"action": "Start"}]}}, "status")
    world.run(seconds=5)
    instance = instance_of(world)
    assert instance is not None
    assert word_of(world) == "Running"
    stop = {"action": "Stop", "uid": instance["metadata"]["uid"]}
    merge(world, VIRTUAL_MACHINES, "web", {"status": {"stateChangeRequests": [stop]}}, "status")
    world.run(seconds=5)
    assert (word_of(world), phase_of(world), launchers_of(world)) == ("Stopped", None, [])


def test_a_halted_machine_stops_and_can_be_started_again() -> None:
    world = run_machine()
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Halted"}})
    assert world.run() == "quiet"
    assert (word_of(world), phase_of(world), launchers_of(world)) == ("Stopped", None, [])
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Always"}})
    world.run()
    assert word_of(world) == "Running"


@pytest.mark.parametrize("code", ["0", "1"])
@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Once", "Manual"])
def test_a_guest_that_ends_is_started_again_as_the_strategy_says(strategy: str, code: str) -> None:
    world = a_machine_world()
    annotations = {"sim.novasphere.dev/run-seconds": "30", "sim.novasphere.dev/exit-code": code}
    add_machine(world, strategy="Always" if strategy == "Manual" else strategy, annotations=annotations)
    world.run(seconds=20)
    instance = instance_of(world)
    assert instance is not None
    if strategy == "Manual":
        merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": strategy}})
    world.run(seconds=15)
    after = instance_of(world)
    is_new = after is not None and after["metadata"]["uid"] != instance["metadata"]["uid"]
    assert is_new == (strategy == "Always" or (strategy, code) == ("RerunOnFailure", "1"))
    if strategy in ("Once", "Manual"):
        assert phase_of(world) == ("Failed" if code == "1" else "Succeeded")
        assert word_of(world) == "Stopped"


def test_a_machine_whose_pod_is_deleted_is_started_again() -> None:
    world = run_machine()
    (pod,) = launchers_of(world)
    before = instance_of(world)
    world.server.delete(PODS, Key(NAMESPACE, pod["metadata"]["name"]))
    world.run(seconds=5)
    (other,) = launchers_of(world)
    after = instance_of(world)
    assert before is not None
    assert after is not None
    assert other["metadata"]["uid"] != pod["metadata"]["uid"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert word_of(world) == "Running"


def test_instances_that_fail_before_they_ran_are_started_after_growing_pauses() -> None:
    world = a_machine_world()
    annotations = {"sim.novasphere.dev/run-seconds": "0", "sim.novasphere.dev/exit-code": "1"}
    add_machine(world, annotations=annotations)
    began = world.clock.now()
    world.run(lambda _: word_of(world) == "CrashLoopBackOff")
    failure = machine_of(world)["status"]["startFailure"]
    assert failure["consecutiveFailCount"] == 1
    world.run(lambda _: machine_of(world)["status"]["startFailure"]["consecutiveFailCount"] == 2)
    assert 9 < world.clock.now() - began < 18
    began = world.clock.now()
    world.run(lambda _: machine_of(world)["status"]["startFailure"]["consecutiveFailCount"] == 3)
    assert 38 < world.clock.now() - began < 64


def test_a_deleted_machine_takes_its_instance_and_pod_along_and_leaves_nothing() -> None:
    world = run_machine()
    world.server.delete(VIRTUAL_MACHINES, Key(NAMESPACE, "web"))
    world.run(seconds=0.05)
    assert word_of(world) in ("Running", "Terminating")
    assert world.run() == "quiet"
    assert world.server.list(VIRTUAL_MACHINES).items == []
    assert instance_of(world) is None
    assert launchers_of(world) == []


@pytest.mark.slow
def test_a_machine_made_anew_under_its_old_name_waits_for_the_old_instance_to_go() -> None:
    world = run_machine()
    before = instance_of(world)
    merge(world, VIRTUAL_MACHINES, "web", {"metadata": {"finalizers": None}})
    world.server.delete(VIRTUAL_MACHINES, Key(NAMESPACE, "web"))
    add_machine(world)
    assert world.run() == "quiet"
    after = instance_of(world)
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert (word_of(world), len(launchers_of(world))) == ("Running", 1)


def a_claim(mode: str, **spec: str) -> Document:
    size = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "data"}, "spec": {"accessModes": [mode], "resources": size, **spec}}


def test_a_claim_that_is_not_there_is_waited_for() -> None:
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "data"}}]
    world = run_machine(volumes=volumes)
    assert (word_of(world), launchers_of(world)) == ("ErrorPvcNotFound", [])
    world.server.create(PERSISTENT_VOLUME_CLAIMS, a_claim("ReadWriteOnce"), NAMESPACE)
    world.run(seconds=10)
    assert len(launchers_of(world)) == 1


def test_a_priority_class_that_is_not_there_is_said_and_tried_again() -> None:
    world = run_machine(priorityClassName="wukong-7")
    assert (phase_of(world), launchers_of(world)) == ("Pending", [])
    problem = condition_of(instance_of(world), "Synchronized")
    assert (problem["status"], problem["reason"]) == ("False", "FailedCreate")
    assert "wukong-7" in problem["message"]


def test_a_machine_without_memory_says_why_it_does_not_start() -> None:
    world = run_machine(domain={"devices": {}})
    assert instance_of(world) is None
    failure = condition_of(machine_of(world), "Failure")
    assert failure["reason"] == "FailedCreate"
    assert "no memory requested, at least one of 'spec.domain.memory.guest'" in failure["message"]


@pytest.mark.parametrize(
    ("change", "is_copied"),
    [
        ({"affinity": {"podAntiAffinity": {}}}, True),
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, True),
        ({"tolerations": [{"key": "a", "operator": "Exists"}]}, True),
        ({"priorityClassName": "system-cluster-critical"}, False),
        ({"schedulerName": "other"}, False),
        ({"evictionStrategy": "None"}, False),
        ({"terminationGracePeriodSeconds": 5}, False),
    ],
)
def test_a_change_is_copied_into_the_running_instance_or_needs_a_restart(change: Document, is_copied: bool) -> None:
    world = run_machine()
    before = launchers_of(world)
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"template": {"spec": change}}})
    assert world.run() == "quiet"
    (field,) = change
    instance = instance_of(world)
    assert instance is not None
    assert (instance["spec"].get(field) == change[field]) == is_copied
    assert (condition_of(machine_of(world), "RestartRequired") == {}) == is_copied
    assert launchers_of(world) == before
    status = machine_of(world)["status"]
    assert (status["observedGeneration"], status["desiredGeneration"]) == (1, 2)


def test_a_required_restart_is_sticky_and_keeps_other_changes_out_until_the_machine_is_restarted() -> None:
    world = run_machine()

    def change(**spec: Any) -> None:
        merge(world, VIRTUAL_MACHINES, "web", {"spec": {"template": {"spec": spec}}})
        world.run()

    change(schedulerName="other")
    change(schedulerName=None)
    assert condition_of(machine_of(world), "RestartRequired")["status"] == "True"
    change(nodeSelector={"kubernetes.io/hostname": "n1"})
    instance = instance_of(world)
    assert instance is not None
    assert "nodeSelector" not in instance["spec"]
    world.server.delete(VIRTUAL_MACHINE_INSTANCES, Key(NAMESPACE, "web"))
    world.run()
    assert condition_of(machine_of(world), "RestartRequired") == {}
    assert (word_of(world), node_of(world)) == ("Running", "n1")


def test_labels_of_the_template_change_nothing_until_a_restart() -> None:
    world = run_machine()
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"template": {"metadata": {"labels": {"new": "label"}}}}})
    world.run()
    assert "new" not in launchers_of(world)[0]["metadata"]["labels"]
    assert condition_of(machine_of(world), "RestartRequired") == {}
    world.server.delete(VIRTUAL_MACHINE_INSTANCES, Key(NAMESPACE, "web"))
    world.run()
    assert launchers_of(world)[0]["metadata"]["labels"]["new"] == "label"


BRIDGE = {"domain": {"memory": {"guest": "1Gi"}, "devices": {"interfaces": [{"name": "default", "bridge": {}}]}}}
GPU = {
    "domain": {
        "memory": {"guest": "1Gi"},
        "devices": {"interfaces": [{"name": "default", "masquerade": {}}], "gpus": [{"name": "gpu"}]},
    }
}
CLAIM = {"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "data"}}]}
DATA_VOLUME = {"volumes": [{"name": "root", "dataVolume": {"name": "data"}}]}


@pytest.mark.parametrize(
    ("spec", "mode", "reason"),
    [
        ({}, "", ""),
        (BRIDGE, "", "InterfaceNotLiveMigratable"),
        ({"networks": None, "domain": {"memory": {"guest": "1Gi"}}}, "", "InterfaceNotLiveMigratable"),
        (GPU, "", "HostDeviceNotLiveMigratable"),
        (CLAIM, "ReadWriteOnce", "DisksNotLiveMigratable"),
        (CLAIM, "ReadWriteMany", ""),
        (DATA_VOLUME, "ReadWriteMany", ""),
        (DATA_VOLUME, "", "DisksNotLiveMigratable"),
    ],
)
def test_whether_a_machine_can_migrate_follows_from_its_spec_and_claims(spec: Document, mode: str, reason: str) -> None:
    world = a_machine_world()
    if mode:
        reference, size = {"namespace": NAMESPACE, "name": "data"}, {"storage": "1Gi"}
        volume = {"accessModes": [mode], "capacity": size, "claimRef": reference}
        world.server.create(PERSISTENT_VOLUMES, {"metadata": {"name": "disk"}, "spec": volume})
        world.server.create(PERSISTENT_VOLUME_CLAIMS, a_claim(mode, storageClassName=""), NAMESPACE)
    add_machine(world, **spec)
    world.run(seconds=5)
    condition = condition_of(instance_of(world), "LiveMigratable")
    assert (condition["status"], condition.get("reason", "")) == ("False" if reason else "True", reason)


def test_virt_api_fills_in_architecture_and_machine_type() -> None:
    world = run_machine(strategy="Halted")
    spec = machine_of(world)["spec"]["template"]["spec"]
    assert (spec["architecture"], spec["domain"]["machine"]) == ("amd64", {"type": "q35"})


def _apart(**term: Any) -> Document:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {required: [{"labelSelector": {}, **term}]}}}


def _near(weight: int) -> Document:
    term = {"labelSelector": {}, "topologyKey": "zone"}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAffinity": {preferred: [{"weight": weight, "podAffinityTerm": term}]}}}


def _on(**expression: Any) -> Document:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}}


PLACE = "spec.template.spec"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            _apart(topologyKey=""),
            f"{PLACE}.podAntiAffinity.{REQUIRED}[0].topologyKey: Required value: can not be empty",
        ),
        (
            _apart(topologyKey="a b"),
            f'{PLACE}.podAntiAffinity.{REQUIRED}[0].topologyKey: Invalid value: "a b": name part',
        ),
        (
            _apart(topologyKey="zone", labelSelector={"matchLabels": {"app": "-web"}}),
            f'{PLACE}.podAntiAffinity.{REQUIRED}[0].labelSelector.matchLabels: Invalid value: "-web": a valid label',
        ),
        (
            _apart(topologyKey="zone", labelSelector={"matchExpressions": [{"key": "app", "operator": "Is"}]}),
            '.labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
        ),
        (
            _apart(topologyKey="zone", labelSelector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
            ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (_near(0), "[0].weight: Invalid value: 0: must be in the range 1-100"),
        (_near(101), "[0].weight: Invalid value: 101: must be in the range 1-100"),
        (
            _on(key="disk", operator="Like"),
            f"{PLACE}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms.0.matchExpressions.0.operator in body should "
            "be one of [DoesNotExist Exists Gt In Lt NotIn]",
        ),
        (
            _on(key="disk", operator="Gt", values=["1", "2"]),
            ".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Has"}]},
            f"{PLACE}.tolerations.0.operator in body should be one of [Equal Exists]",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            f"{PLACE}.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        ({"evictionStrategy": "Maybe"}, f"{PLACE}.evictionStrategy is set with an unrecognized option: Maybe"),
    ],
)
def test_virt_api_refuses_a_bad_template_in_its_words(spec: Document, message: str) -> None:
    world = a_machine_world(0)
    with pytest.raises(Invalid) as refusal:
        add_machine(world, **spec)
    assert str(refusal.value).startswith(
        'admission webhook "virtualmachine-validator.kubevirt.io" denied the request: '
    )
    assert message in str(refusal.value)
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")


def test_virt_api_refuses_reserved_labels_and_contradicting_strategies() -> None:
    world = a_machine_world(0)
    machine = a_machine()
    machine["spec"]["template"]["metadata"]["labels"]["kubevirt.io/nodeName"] = "n0"
    with pytest.raises(Invalid, match=r"reserved kubevirt\.io/ labels on a VMI object is prohibited"):
        world.server.create(VIRTUAL_MACHINES, machine, NAMESPACE)
    machine = a_machine()
    machine["spec"]["running"] = True
    with pytest.raises(Invalid, match="Running and RunStrategy are mutually exclusive"):
        world.server.create(VIRTUAL_MACHINES, machine, NAMESPACE)
    with pytest.raises(Invalid, match=r"Invalid RunStrategy \(Sometimes\)"):
        world.server.create(VIRTUAL_MACHINES, a_machine(strategy="Sometimes"), NAMESPACE)
    world.server.create(VIRTUAL_MACHINES, a_machine(strategy="Halted"), NAMESPACE)
    with pytest.raises(Invalid, match="can not be empty"):
        merge(world, VIRTUAL_MACHINES, "web", {"spec": {"template": {"spec": _apart(topologyKey="")}}})


def test_a_changed_machine_is_judged_as_a_new_one_is_and_its_status_is_not() -> None:
    world = a_machine_world()
    add_machine(world)
    with pytest.raises(Invalid, match=r"Invalid RunStrategy \(Sometimes\)"):
        merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Sometimes"}})
    merge(world, VIRTUAL_MACHINES, "web", {"spec": {"runStrategy": "Manual"}})
    merge(world, VIRTUAL_MACHINES, "web", {"status": {"printableStatus": "Odd"}}, "status")
    machine = machine_of(world)
    assert (machine["spec"]["runStrategy"], machine["status"]["printableStatus"]) == ("Manual", "Odd")
