"""Manifests applied to the objects of a snapshot: what is unchanged stays, whatever a server had filled in.

Every fragment of the hand table that a real server is asked about (tests/manifest_comparison) is applied here the way
`wukong sim run -s -f` does it: to a snapshot as kubectl prints one, and to one that `wukong snapshot` reduced.
"""

from __future__ import annotations

import copy
import json

import pytest

from manifest_comparison.kubectl_apply import LAST_APPLIED, annotate, build_patch
from manifest_comparison.objects import Subject, build, list_hand_table
from manifest_comparison.pod_fields import CLAIM, FRAGMENTS, NOT_SET
from small_cluster import ManualClock
from wukong.api.field_types import STRUCT, Type, struct_named
from wukong.api.resources import Key
from wukong.cluster.reduction import reduce_document
from wukong.embedded.scenario.play.steps import MANAGER, apply_documents
from wukong.embedded.snapshot.load import load_snapshot
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.store import Server
from wukong.embedded.store.documents import copy_document, without_fields
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

SUBJECTS = list(list_hand_table())


def a_server() -> Server:
    return Server(ManualClock(), definitions=())


def stored(subject: Subject, *, is_annotated: bool) -> Document:
    """The object as `kubectl get -o json` prints it."""
    manifest = annotate(subject.before) if is_annotated else subject.before
    return copy_document(a_server().create(subject.resource, manifest, "default"))


def applied(snapshot: Document, manifest: Document) -> tuple[Document, Document]:
    """The object of a snapshot before and after a manifest is applied to it, as `sim run -s -f` does."""
    server, start = a_server(), load_snapshot([copy.deepcopy(snapshot)])
    for resource, documents in start.objects:
        server.restore(resource, [item for item in documents if item["metadata"]["name"] != "default"])
    action = apply_documents([manifest], frozenset({"default"}))[-1]
    before = server.get(action.resource, action.key)  # type: ignore[union-attr]
    presume_fields(server, [manifest], MANAGER)
    return before, server.patch(action.resource, action.key, action.patch)  # type: ignore[union-attr]


def spec_and_generation(document: Document) -> tuple[Document, int]:
    return document["spec"], document["metadata"].get("generation", 0)


def titles(subject: Subject) -> str:
    return subject.title


@pytest.mark.parametrize("subject", SUBJECTS, ids=titles)
def test_an_unchanged_manifest_changes_nothing(subject: Subject) -> None:
    for is_annotated in (True, False):
        before, after = applied(stored(subject, is_annotated=is_annotated), subject.before)
        assert spec_and_generation(after) == spec_and_generation(before)


@pytest.mark.parametrize("subject", SUBJECTS, ids=titles)
def test_an_unchanged_manifest_changes_nothing_of_a_reduced_snapshot(subject: Subject) -> None:
    before, after = applied(reduce_document(stored(subject, is_annotated=True)), reduce_document(subject.before))
    assert spec_and_generation(after) == spec_and_generation(before)


@pytest.mark.parametrize("subject", [item for item in SUBJECTS if item.kind not in ("Pod", "Job")], ids=titles)
def test_a_changed_manifest_becomes_what_kubectl_apply_makes_of_it(subject: Subject) -> None:
    snapshot = stored(subject, is_annotated=True)
    server = a_server()
    live = server.create(subject.resource, annotate(subject.before), "default")
    kind = server.kinds.of(subject.resource)
    assert kind.type is not None
    patch = PatchBody("strategic", build_patch(kind.type, subject.after, live))
    key = Key("default", subject.before["metadata"]["name"])
    try:
        expected = server.patch(subject.resource, key, patch)["spec"]
    except ClusterError as error:
        with pytest.raises(type(error)):
            applied(snapshot, subject.after)
        return
    assert applied(snapshot, subject.after)[1]["spec"] == expected


def test_the_image_of_a_stateful_set_with_claims_can_change() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": CLAIM}]
    mounts = {"main": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}}
    before = build("StatefulSet", "db", [mounts], {"volumeClaimTemplates": claims})
    after = build("StatefulSet", "db", [mounts, {"main": {"image": "db:2"}}], {"volumeClaimTemplates": claims})
    snapshot = stored(Subject("", "StatefulSet", before, after), is_annotated=False)
    _, changed = applied(snapshot, after)
    assert changed["spec"]["template"]["spec"]["containers"][0]["image"] == "db:2"
    assert changed["spec"]["volumeClaimTemplates"] == snapshot["spec"]["volumeClaimTemplates"]
    assert changed["metadata"]["generation"] == 2


def test_a_field_that_kubernetes_does_not_know_is_no_change() -> None:
    before = build("Deployment", "web", [])
    slip = copy.deepcopy(before)
    slip["spec"]["replica"] = 3
    slip["spec"]["template"]["spec"]["nodeSelectr"] = {"disk": "ssd"}
    unchanged, after = applied(stored(Subject("", "Deployment", before, before), is_annotated=True), slip)
    assert spec_and_generation(after) == spec_and_generation(unchanged)


def test_a_default_that_nobody_applied_does_not_stand_in_the_way_of_another_strategy() -> None:
    before, after = build("Deployment", "web", []), build("Deployment", "web", [], {"strategy": {"type": "Recreate"}})
    _, changed = applied(stored(Subject("", "Deployment", before, after), is_annotated=True), after)
    assert changed["spec"]["strategy"] == {"type": "Recreate"}


def test_the_hand_table_sets_every_field_of_a_pod() -> None:
    used: set[str] = set()
    for fragment in FRAGMENTS:
        for form in (fragment.before, fragment.after):
            spec = build("Pod", "x", [form])["spec"]
            note_fields(spec, struct_named("PodSpec"), used)
    elsewhere = {  # in other tests of the comparison, or by the server alone
        "PodSpec.nodeName", "PodSpec.priority", "PodSpec.restartPolicy", "PodSpec.activeDeadlineSeconds",
        "PodSpec.ephemeralContainers", "PodSpec.runtimeClassName", "PodSpec.overhead", "PodSpec.schedulingGates",
        "Lifecycle.stopSignal", "VolumeProjection.clusterTrustBundle", "VolumeProjection.podCertificate",
        "TypedObjectReference.namespace", "PodDNSConfigOption.value",
    }  # fmt: skip
    missing = {
        f"{name}.{field}"
        for name in reachable(struct_named("PodSpec"), set())
        if name not in NOT_SET and name not in ("EphemeralContainer",)
        for field in struct_named(name).fields
    } - used
    assert missing <= elsewhere, sorted(missing - elsewhere)


def note_fields(value: object, type_: Type, used: set[str]) -> None:
    if type_.shape == STRUCT and isinstance(value, dict):
        for name, entry in value.items():
            used.add(f"{type_.name}.{name}")
            note_fields(entry, type_.fields[name].type, used)
    elif type_.inner is not None:
        for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            note_fields(entry, type_.inner, used)


def reachable(type_: Type, seen: set[str]) -> set[str]:
    if type_.shape == STRUCT and type_.name not in seen:
        seen.add(type_.name)
        for field in type_.fields.values():
            reachable(field.type, seen)
    elif type_.inner is not None:
        reachable(type_.inner, seen)
    return seen


def test_what_kubectl_keeps_of_a_manifest_is_read_back() -> None:
    manifest = build("Deployment", "web", [])
    text = annotate(manifest)["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(text) == without_fields(manifest)
