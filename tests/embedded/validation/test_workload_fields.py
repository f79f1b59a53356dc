"""Workloads that the API server refuses, and what of a stored object cannot change, by the place of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import CONTAINER, places
from wukong.embedded.store.validation.claims import find_claim_problems
from wukong.embedded.store.validation.updates import find_forbidden_changes
from wukong.embedded.store.validation.workloads import find_amount_problems, find_workload_problems
from wukong.ports import Document

LABELS = {"app": "web"}
CLAIM: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
LASTING: dict[str, Document] = {
    "Deployment": {"strategy": {"type": "Recreate"}},
    "ReplicaSet": {},
    "DaemonSet": {"updateStrategy": {"type": "OnDelete"}},
    "StatefulSet": {"podManagementPolicy": "OrderedReady", "updateStrategy": {"type": "OnDelete"}},
    "ReplicationController": {"selector": LABELS},
}
JOB_LABELS = {
    "batch.kubernetes.io/job-name": "web", "job-name": "web",
    "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u",
}  # fmt: skip


def a_template(labels: Document | None = None, /, **fields: Any) -> Document:
    pod = {"containers": [CONTAINER], "restartPolicy": "Always", **fields}
    return {"metadata": {"labels": LABELS if labels is None else labels}, "spec": pod}


def of(kind: str, known: Document | None = None, /, **fields: Any) -> list[str]:
    """What is wrong with a workload of one kind, below its spec."""
    spec = {"selector": {"matchLabels": LABELS}, "template": a_template(), **LASTING[kind], **fields}
    document = {"metadata": {"name": "web"}, "spec": {name: value for name, value in spec.items() if value is not None}}
    return [place.removeprefix("spec.") for place in places(find_workload_problems(kind, document, known or {}))]


def of_job(labels: Document | None = None, /, **fields: Any) -> list[str]:
    """What is wrong with a Job, below its spec; `policy` is the restart policy of its pods."""
    template = a_template(JOB_LABELS if labels is None else labels, restartPolicy=fields.pop("policy", "Never"))
    spec = {"selector": {"matchLabels": {"controller-uid": "u"}}, "template": template, **fields}
    document = {"metadata": {"name": "web", "uid": "u"}, "spec": spec}
    return [place.removeprefix("spec.") for place in places(find_workload_problems("Job", document, {}))]


def of_claim(**fields: Any) -> list[str]:
    spec = {name: value for name, value in {**CLAIM, **fields}.items() if value is not None}
    return places(find_claim_problems(spec, "spec"))


@pytest.mark.parametrize("kind", list(LASTING))
def test_numbers_of_workloads_are_not_negative(kind: str) -> None:
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        assert of(kind, **{field: 0}) == []
        has_field = (kind, field) not in (("DaemonSet", "replicas"), ("StatefulSet", "revisionHistoryLimit"))
        assert of(kind, **{field: -1}) == ([f"{field}: Invalid value"] if has_field else [])


@pytest.mark.parametrize("kind", list(LASTING))
def test_pods_of_lasting_workloads_always_restart_and_have_no_deadline(kind: str) -> None:
    here = "template.spec"
    assert of(kind, template=a_template(restartPolicy="Never")) == [f"{here}.restartPolicy: Unsupported value"]
    assert of(kind, template=a_template(activeDeadlineSeconds=5)) == [f"{here}.activeDeadlineSeconds: Forbidden"]
    assert of(kind, template=a_template(hostNetwork=True, hostUsers=False)) == [f"{here}.hostNetwork: Forbidden"]
    assert of(kind, template=None) == (
        ["template: Required value"]
        if kind == "ReplicationController"
        else ["template.metadata.labels: Invalid value", "template: Required value"]
    )


@pytest.mark.parametrize("kind", list(LASTING))
def test_a_selector_matches_the_template_and_is_not_empty(kind: str) -> None:
    is_old = kind == "ReplicationController"
    wide: Document = {} if is_old else {"matchLabels": {}}
    other: Document = {"app": "b"} if is_old else {"matchLabels": {"app": "b"}}
    mismatch = ["template.metadata.labels: Invalid value"]
    assert of(kind, selector=other) == mismatch
    assert of(kind, selector=wide) == (["selector: Required value"] if is_old else ["selector: Invalid value"])
    assert of(kind, template=a_template({"app": "web", "more": "x"})) == []
    if not is_old:
        assert of(kind, selector=None) == (mismatch if kind == "DaemonSet" else ["selector: Required value"])
        expression = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
        assert of(kind, selector=expression) == []
        assert of(kind, selector={"matchLabels": {"a": "b c"}}) == ["selector.matchLabels: Invalid value"]


def test_what_was_checked_before_and_is_the_same_is_not_checked_again() -> None:
    bad = a_template(restartPolicy="Never")
    assert of("ReplicaSet", {"spec": {"template": bad}}, template=bad) == []
    assert of("ReplicaSet", {"spec": {"template": a_template()}}, template=bad) != []


def test_a_deployment_rolls_by_one_of_two_strategies() -> None:
    def rolling(surge: int | str, unavailable: int | str) -> list[str]:
        update = {"maxSurge": surge, "maxUnavailable": unavailable}
        found = of("Deployment", strategy={"type": "RollingUpdate", "rollingUpdate": update})
        return [place.removeprefix("strategy.rollingUpdate.") for place in found]

    assert rolling(1, 0) == rolling(0, 1) == rolling("1%", "0%") == rolling("200%", "100%") == []
    assert rolling(0, 0) == rolling("0%", 0) == rolling(0, "0%") == ["maxUnavailable: Invalid value"]
    assert rolling(-1, 1) == ["maxSurge: Invalid value"]
    assert rolling(1, -1) == rolling(1, "101%") == rolling(1, "x") == ["maxUnavailable: Invalid value"]
    assert rolling("x", 0) == ["maxSurge: Invalid value", "maxUnavailable: Invalid value"]
    assert of("Deployment", strategy={"type": "Slow"}) == ["strategy: Unsupported value"]
    recreate = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    assert of("Deployment", strategy=recreate) == ["strategy.rollingUpdate: Forbidden"]


def test_a_deployment_has_longer_to_progress_than_its_pods_need_to_be_available() -> None:
    place = ["progressDeadlineSeconds: Invalid value"]
    assert of("Deployment", progressDeadlineSeconds=11, minReadySeconds=10) == []
    assert of("Deployment", progressDeadlineSeconds=10, minReadySeconds=10) == place
    assert of("Deployment", progressDeadlineSeconds=1) == []
    assert of("Deployment", progressDeadlineSeconds=0) == place
    assert of("Deployment", progressDeadlineSeconds=-1) == place * 2


def test_a_daemon_set_has_a_surge_or_lets_pods_be_unavailable() -> None:
    def rolling(surge: int | str, unavailable: int | str) -> list[str]:
        update = {"maxSurge": surge, "maxUnavailable": unavailable}
        found = of("DaemonSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": update})
        return [place.removeprefix("updateStrategy.rollingUpdate.") for place in found]

    assert rolling(0, 1) == rolling(1, 0) == rolling("100%", 0) == rolling("0%", "100%") == []
    assert rolling(0, 0) == rolling("0%", "0%") == ["maxUnavailable: Required value"]
    assert rolling(1, 1) == rolling("1%", "1%") == ["maxSurge: Invalid value"]
    assert rolling(0, "101%") == ["maxUnavailable: Invalid value"]
    assert rolling("101%", 0) == rolling(-1, 0) == ["maxSurge: Invalid value"]
    assert of("DaemonSet", updateStrategy={"type": "Slow"}) == ["updateStrategy: Unsupported value"]


def test_a_stateful_set_has_a_policy_a_strategy_and_whole_numbers() -> None:
    def rolling(**update: Any) -> list[str]:
        return of("StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": update})

    assert of("StatefulSet", podManagementPolicy="Parallel") == []
    assert of("StatefulSet", podManagementPolicy="Any") == ["podManagementPolicy: Invalid value"]
    assert of("StatefulSet", updateStrategy={"type": "RollingUpdate"}) == rolling(partition=0) == []
    assert rolling(partition=-1) == ["updateStrategy.rollingUpdate.partition: Invalid value"]
    assert of("StatefulSet", updateStrategy={"type": "Slow"}) == ["updateStrategy: Invalid value"]
    strategy = {"type": "OnDelete", "rollingUpdate": {}}
    assert of("StatefulSet", updateStrategy=strategy) == ["updateStrategy.rollingUpdate: Invalid value"]
    assert of("StatefulSet", ordinals={"start": 0}) == []
    assert of("StatefulSet", ordinals={"start": -1}) == ["ordinals.start: Invalid value"]
    for field in ("whenDeleted", "whenScaled"):
        for word in ("Retain", "Delete"):
            assert of("StatefulSet", persistentVolumeClaimRetentionPolicy={field: word}) == []
        found = of("StatefulSet", persistentVolumeClaimRetentionPolicy={field: "Maybe"})
        assert found == [f"persistentVolumeClaimRetentionPolicy.{field}: Unsupported value"]


def test_the_service_and_the_claims_of_a_stateful_set_are_checked_once() -> None:
    bad: Document = {
        "serviceName": "A_B",
        "volumeClaimTemplates": [{"metadata": {"name": "c"}, "spec": {**CLAIM, "accessModes": []}}],
    }
    assert of("StatefulSet", **bad) == [
        "serviceName: Invalid value",
        "volumeClaimTemplates[0].spec.accessModes: Required value",
    ]
    assert of("StatefulSet", {"spec": {}}, **bad) == []


def test_claims_of_a_stateful_set_are_volumes_of_its_pods_in_place_of_those_of_their_names() -> None:
    mounting = {**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    claims = [{"metadata": {"name": "data"}, "spec": CLAIM}]
    template = a_template(containers=[mounting])
    place = "template.spec.containers[0].volumeMounts[0].name: Not found"
    assert of("StatefulSet", template=template) == of("ReplicaSet", template=template) == [place]
    assert of("StatefulSet", template=template, volumeClaimTemplates=claims) == []
    replaced = a_template(containers=[mounting], volumes=[{"name": "data", "hostPath": {}}])
    assert of("StatefulSet", template=replaced, volumeClaimTemplates=claims) == []
    kept = a_template(containers=[mounting], volumes=[{"name": "other", "hostPath": {}}])
    found = of("StatefulSet", template=kept, volumeClaimTemplates=claims)
    assert found == ["template.spec.volumes[1].hostPath.path: Required value"]


def test_names_of_the_pods_of_a_stateful_set_are_its_own() -> None:
    for field in ("hostname", "subdomain"):
        assert of("StatefulSet", template=a_template(**{field: "A_"})) == []
        assert of("ReplicaSet", template=a_template(**{field: "A_"})) == [f"template.spec.{field}: Invalid value"]


def test_pods_of_a_job_end() -> None:
    assert of_job(policy="Never") == of_job(policy="OnFailure") == []
    assert of_job(policy="Always") == ["template.spec.restartPolicy: Required value"]
    assert of_job(policy="Often") == ["template.spec.restartPolicy: Unsupported value"] * 2


def test_numbers_of_a_job_are_not_negative() -> None:
    plain = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    for field in plain:
        assert of_job(**{field: 0}) == []
        assert of_job(**{field: -1}) == [f"{field}: Invalid value"]
    indexed = {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    assert of_job(**indexed) == []
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        assert of_job(**{**indexed, field: -1}) == [f"{field}: Invalid value"]


def test_only_an_indexed_job_counts_by_index() -> None:
    indexed: Document = {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}
    assert of_job(completionMode="NonIndexed") == of_job(**indexed, maxFailedIndexes=3) == []
    assert of_job(completionMode="Other") == ["completionMode: Unsupported value"]
    assert of_job(completionMode="Indexed") == ["completions: Required value"]
    assert of_job(**indexed, maxFailedIndexes=4) == ["maxFailedIndexes: Invalid value"]
    assert of_job(completionMode="NonIndexed", backoffLimitPerIndex=1, maxFailedIndexes=1) == [
        "backoffLimitPerIndex: Invalid value",
        "maxFailedIndexes: Invalid value",
    ]
    assert of_job(completionMode="Indexed", completions=3, maxFailedIndexes=1) == [
        "backoffLimitPerIndex: Required value"
    ]


def test_a_policy_of_failures_needs_pods_that_never_restart() -> None:
    assert of_job(podReplacementPolicy="Failed") == of_job(podReplacementPolicy="TerminatingOrFailed") == []
    assert of_job(podReplacementPolicy="Other") == ["podReplacementPolicy: Unsupported value"]
    assert of_job(podFailurePolicy={}, podReplacementPolicy="Failed") == []
    found = of_job(podFailurePolicy={}, podReplacementPolicy="TerminatingOrFailed")
    assert found == ["podReplacementPolicy: Unsupported value"]
    assert of_job(podFailurePolicy={}, policy="OnFailure") == ["template.spec.restartPolicy: Invalid value"]


def test_pods_of_a_job_carry_its_name_and_uid() -> None:
    for key in JOB_LABELS:
        without = {name: value for name, value in JOB_LABELS.items() if name != key}
        place = f"template.metadata.labels[{key}]"
        mismatch = ["template.metadata.labels: Invalid value"] if key == "controller-uid" else []
        assert of_job(without) == [*mismatch, f"{place}: Required value"]
        assert of_job({**JOB_LABELS, key: "other"}) == [*mismatch, f"{place}: Invalid value"]
    assert of_job({"controller-uid": "u"}, manualSelector=True) == []


@pytest.mark.parametrize(
    ("value", "is_valid", "is_share"),
    [(0, True, True), (-1, False, False), ("0%", True, True), ("100%", True, True), ("101%", True, False),
     ("5", False, False), ("-1%", False, False), ("%", False, False), (None, True, True)],
)  # fmt: skip
def test_an_amount_of_pods_is_a_number_or_a_percentage(value: Any, is_valid: bool, is_share: bool) -> None:
    assert (list(find_amount_problems(value, "p")) == []) is is_valid
    assert (list(find_amount_problems(value, "p", is_share=True)) == []) is is_share


# Claims ------------------------------------------------------------------------------------------------------------


def test_a_claim_says_how_it_is_used_and_how_large_it_is() -> None:
    modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"]
    assert of_claim(accessModes=modes) == of_claim(accessModes=["ReadWriteOncePod"]) == []
    assert of_claim(accessModes=[]) == ["spec.accessModes: Required value"]
    assert of_claim(accessModes=["Any"]) == ["spec.accessModes: Unsupported value"]
    assert of_claim(accessModes=["ReadWriteOncePod", "ReadOnlyMany"]) == ["spec.accessModes: Forbidden"]
    assert of_claim(accessModes=["ReadWriteOncePod", "Any"]) == ["spec.accessModes: Unsupported value"]
    assert of_claim(resources={}) == ["spec.resources[storage]: Required value"]
    for size in ("0", "-1"):
        assert of_claim(resources={"requests": {"storage": size}}) == ["spec.resources[storage]: Invalid value"]
    assert of_claim(volumeMode="Block") == of_claim(volumeMode="Filesystem") == []
    assert of_claim(volumeMode="Tape") == ["spec.volumeMode: Unsupported value"]
    for field in ("storageClassName", "volumeAttributesClassName"):
        assert of_claim(**{field: "a.b"}) == of_claim(**{field: ""}) == []
        assert of_claim(**{field: "A_"}) == [f"spec.{field}: Invalid value"]
    assert of_claim(selector={"matchLabels": {"a": "b c"}}) == ["spec.selector.matchLabels: Invalid value"]


@pytest.mark.parametrize("field", ["dataSource", "dataSourceRef"])
def test_a_source_of_data_names_a_claim_or_a_kind_of_another_group(field: str) -> None:
    assert of_claim(**{field: {"kind": "PersistentVolumeClaim", "name": "a"}}) == []
    assert of_claim(**{field: {"kind": "VolumeSnapshot", "name": "a", "apiGroup": "snapshot.storage.k8s.io"}}) == []
    assert of_claim(**{field: {"kind": "VolumeSnapshot", "name": "a"}}) == [f"spec.{field}: Invalid value"]
    assert of_claim(**{field: {"kind": "A", "name": "a", "apiGroup": "A_"}}) == [
        f"spec.{field}.apiGroup: Invalid value"
    ]
    assert of_claim(**{field: {"apiGroup": "a"}}) == [
        f"spec.{field}.{name}: Required value" for name in ("name", "kind")
    ]


def test_two_sources_of_data_are_the_same() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "a"}
    assert of_claim(dataSource=source, dataSourceRef=source) == []
    for field, value in (("name", "b"), ("kind", "X"), ("apiGroup", "g")):
        other = {**source, "apiGroup": "x", field: value}
        assert of_claim(dataSource={**source, "apiGroup": "x"}, dataSourceRef=other) == ["spec: Invalid value"]
    elsewhere = {**source, "namespace": "shop"}
    assert of_claim(dataSourceRef=elsewhere) == []
    assert of_claim(dataSource=source, dataSourceRef=elsewhere) == ["spec: Invalid value"]
    assert of_claim(dataSourceRef={**source, "namespace": "A"}) == ["spec.dataSourceRef.namespace: Invalid value"]


# Changes -----------------------------------------------------------------------------------------------------------


def changes(kind: str, old: Document, new: Document, status: Document | None = None) -> list[str]:
    """What is wrong with a change from one spec to another."""
    return places(
        find_forbidden_changes(kind, {"spec": old, "status": status or {}}, {"spec": new, "status": status or {}})
    )


def test_a_pod_changes_its_images_and_adds_tolerations() -> None:
    pod: Document = {
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "tolerations": [{"key": "a"}],
        "hostname": "x",
    }
    fine: list[Document] = [
        {"containers": [{**CONTAINER, "image": "app:2"}]},
        {"initContainers": [{**CONTAINER, "image": "app:2"}]},
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
        {"tolerations": [{"key": "a", "tolerationSeconds": 5}]},
        {"activeDeadlineSeconds": 5},
    ]
    assert [entry for entry in fine if changes("Pod", pod, {**pod, **entry})] == []
    assert changes("Pod", pod, {**pod, "tolerations": [{"key": "b"}]}) == ["spec.tolerations: Forbidden"]
    for field in ("containers", "initContainers"):
        assert changes("Pod", pod, {**pod, field: [CONTAINER, CONTAINER]}) == [f"spec.{field}: Forbidden"]
        assert changes("Pod", pod, {**pod, field: [{**CONTAINER, "name": "b"}]}) == ["spec: Forbidden"]
    for field, value in (("hostname", "y"), ("nodeName", "n"), ("priority", 5)):
        assert changes("Pod", pod, {**pod, field: value}) == ["spec: Forbidden"]


def test_the_deadline_of_a_pod_only_gets_shorter() -> None:
    def deadline(old: int | None, new: int | None) -> list[str]:
        specs = [{} if seconds is None else {"activeDeadlineSeconds": seconds} for seconds in (old, new)]
        return changes("Pod", *specs)

    assert deadline(None, 5) == deadline(5, 4) == []
    assert deadline(5, 6) == deadline(5, None) == ["spec.activeDeadlineSeconds: Invalid value"]


def test_the_grace_period_of_a_pod_becomes_1_only_where_it_was_negative() -> None:
    def grace(old: int, new: int) -> list[str]:
        return changes("Pod", {"terminationGracePeriodSeconds": old}, {"terminationGracePeriodSeconds": new})

    assert grace(-1, 1) == []
    assert grace(-1, 2) == grace(30, 1) == grace(0, 1) == ["spec: Forbidden"]
    assert changes("Pod", {}, {"terminationGracePeriodSeconds": 1}) == ["spec: Forbidden"]


def test_a_gated_pod_loses_gates_and_narrows_its_nodes() -> None:
    gated: Document = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "1"}}
    free: Document = {"nodeSelector": {"x": "1"}}
    near: Document = {"podAffinity": {"p": 1}}
    assert changes("Pod", gated, {**gated, "schedulingGates": [{"name": "b"}]}) == changes("Pod", gated, free) == []
    assert changes("Pod", gated, {**gated, "schedulingGates": [{"name": "b"}, {"name": "c"}]}) == [
        "spec.schedulingGates[1].name: Forbidden"
    ]
    assert changes("Pod", gated, {**gated, "nodeSelector": {"x": "1", "y": "2"}}) == []
    for selector in ({"x": "2"}, {"y": "1"}):
        assert changes("Pod", gated, {**gated, "nodeSelector": selector}) == ["spec.nodeSelector: Invalid value"]
    assert changes("Pod", free, {"nodeSelector": {"x": "1", "y": "2"}}) == ["spec: Forbidden"]
    assert changes("Pod", gated, {**gated, "affinity": {"nodeAffinity": {"n": 1}}}) == []
    assert changes("Pod", gated, {**gated, "affinity": near}) == ["spec: Forbidden"]
    assert changes("Pod", free, {**free, "affinity": {"nodeAffinity": {"n": 1}}}) == ["spec: Forbidden"]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_a_selector_never_changes(kind: str) -> None:
    assert changes(kind, {"selector": {"a": "b"}, "replicas": 1}, {"selector": {"a": "b"}, "replicas": 2}) == []
    assert changes(kind, {"selector": {"a": "b"}}, {"selector": {"a": "c"}}) == ["spec.selector: Invalid value"]


def test_a_stateful_set_changes_in_seven_fields() -> None:
    mutable = ["replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds"]
    for field in [*mutable, "persistentVolumeClaimRetentionPolicy"]:
        assert changes("StatefulSet", {field: 1}, {field: 2}) == []
    for field in ("serviceName", "volumeClaimTemplates", "podManagementPolicy", "selector"):
        assert changes("StatefulSet", {field: 1}, {field: 2}) == ["spec: Forbidden"]


def test_a_job_keeps_what_says_when_it_is_complete() -> None:
    for field in (
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        assert changes("Job", {field: "a"}, {field: "b"}) == [f"spec.{field}: Invalid value"]
    assert changes("Job", {"completions": 1, "parallelism": 1}, {"completions": 2, "parallelism": 2}) == [
        "spec.completions: Invalid value"
    ]
    assert changes("Job", {"parallelism": 1, "suspend": True}, {"parallelism": 2, "suspend": False}) == []


def test_an_indexed_job_changes_its_completions_together_with_its_parallelism() -> None:
    def size(old: int | None, completions: int | None, parallelism: int | None) -> list[str]:
        mode = {"completionMode": "Indexed"}
        return changes(
            "Job", {**mode, "completions": old}, {**mode, "completions": completions, "parallelism": parallelism}
        )

    assert size(1, 2, 2) == []
    for sizes in ((1, 2, 3), (None, 2, 2), (1, None, None)):
        assert size(*sizes) == ["spec.completions: Invalid value"], sizes


def test_where_the_pods_of_a_job_run_changes_before_it_starts() -> None:
    def moved(old: Document, new: Document, status: Document | None = None, *, is_suspended: bool = True) -> list[str]:
        return changes("Job", {"suspend": is_suspended, "template": old}, {"template": new}, status)

    def pod(**fields: Any) -> Document:
        return {"metadata": {}, "spec": fields}

    place = ["spec.template: Invalid value"]
    fine: list[Document] = [
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{}]},
        {"schedulingGates": [{}]},
        {"affinity": {"nodeAffinity": {}}},
    ]
    for fields in fine:
        assert moved(pod(), pod(**fields)) == []
        assert moved(pod(), pod(**fields), is_suspended=False) == place
        assert moved(pod(), pod(**fields), {"startTime": "2026-01-01T00:00:00Z"}) == place
    for meta in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
        assert moved(pod(), {"metadata": meta, "spec": {}}) == []
    assert moved(pod(), pod(hostname="a")) == moved(pod(), pod(affinity={"podAffinity": {}})) == place


def test_a_priority_class_keeps_its_value_and_policy() -> None:
    before = {"value": 1, "preemptionPolicy": "Never", "description": "a"}
    assert find_forbidden_changes("PriorityClass", before, {**before, "description": "b"}) == []
    assert places(find_forbidden_changes("PriorityClass", before, {**before, "value": 2})) == ["value: Forbidden"]
    found = find_forbidden_changes("PriorityClass", before, {**before, "preemptionPolicy": "PreemptLowerPriority"})
    assert places(found) == ["preemptionPolicy: Invalid value"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_immutable_data_stays_and_stays_immutable(kind: str) -> None:
    free = {"data": {"a": "1"}, "binaryData": {}, "immutable": False}
    assert find_forbidden_changes(kind, free, {**free, "data": {}, "immutable": True}) == []
    held = {**free, "immutable": True}
    for field, value in (("data", {}), ("binaryData", {"b": "MQ=="}), ("immutable", False)):
        assert places(find_forbidden_changes(kind, held, {**held, field: value})) == [f"{field}: Forbidden"]
