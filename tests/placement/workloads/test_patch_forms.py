"""The four forms of one change: each makes the same object, at the version that was read and at no other."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest

from affinities import AFFINITIES, HOSTNAME, REQUIRED, ZONE, a_workload, term
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import Conflict, InputError
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.patch_forms import add_version, build_patch, without_version
from wukong.placement.workloads.rules import Rule
from wukong.ports import PatchBody, PatchType

Document = dict[str, Any]
FORMS: tuple[PatchType, ...] = ("json", "merge", "strategic", "apply")
EDIT = Edit(rule=Rule(name="apart", topology_key=HOSTNAME, is_per_version=True), replicas=3, max_surge=1)


@pytest.fixture(scope="module")
def server() -> Server:
    """One for all tests, which have Deployments of their own: to make one takes as long as many tests."""
    return Server(VirtualClock())


NUMBERS = count()


def create(server: Server, affinity: Document | None) -> Key:
    key = Key("default", f"web-{next(NUMBERS)}")
    body = {**a_workload(copy.deepcopy(affinity)), "metadata": {"name": key.name, "namespace": key.namespace}}
    server.create(DEPLOYMENTS, body, key.namespace)
    return key


def write(server: Server, key: Key, edit: Edit, form: PatchType) -> Document:
    before = server.get(DEPLOYMENTS, key)
    patch = build_patch(before, edit_workload(before, edit), form)
    return server.patch(
        DEPLOYMENTS, key, PatchBody(patch.type, patch.body, manager=patch.manager, force=form == "apply")
    )


@pytest.mark.slow
def test_all_forms_make_the_same_object(server: Server) -> None:
    for name in AFFINITIES:
        check_forms(server, name)


def test_all_forms_make_the_same_object_beside_rules_of_all_three_kinds(server: Server) -> None:
    check_forms(server, "all three")


def check_forms(server: Server, name: str) -> None:
    keys = {form: create(server, AFFINITIES[name]) for form in FORMS}
    wanted = edit_workload(server.get(DEPLOYMENTS, keys["json"]), EDIT)["spec"]
    first = {form: write(server, key, EDIT, form)["spec"] for form, key in keys.items()}
    assert first["json"] == wanted
    assert all(spec == first["json"] for spec in first.values()), name
    second = Edit(rule=Rule(name="apart", topology_key=ZONE, weight=9))
    again = {form: write(server, key, second, form)["spec"] for form, key in keys.items()}
    assert again["json"]["replicas"] == 3, "what was applied before stays applied"
    assert all(spec == again["json"] for spec in again.values()), name


@pytest.mark.parametrize("form", ["json", "merge", "strategic"])
@pytest.mark.slow
def test_a_rule_that_came_and_went_leaves_the_spec_as_it_was(server: Server, form: PatchType) -> None:
    for name, affinity in AFFINITIES.items():
        key = create(server, affinity)
        before = server.get(DEPLOYMENTS, key)["spec"]
        write(server, key, Edit(rule=Rule(name="apart", topology_key=HOSTNAME)), form)
        assert write(server, key, Edit(removed="apart"), form)["spec"] == before, name


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_refused_at_another_version(server: Server, form: PatchType) -> None:
    key = create(server, None)
    before = server.get(DEPLOYMENTS, key)
    patch = build_patch(before, edit_workload(before, EDIT), form)
    server.patch(DEPLOYMENTS, key, PatchBody("merge", {"metadata": {"labels": {"team": "a"}}}))
    with pytest.raises(Conflict):
        server.patch(DEPLOYMENTS, key, PatchBody(patch.type, patch.body, manager=patch.manager, force=form == "apply"))


@pytest.mark.parametrize(
    "patch",
    [
        PatchBody("json", [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
        PatchBody("merge", {"spec": {"replicas": 5}}),
        PatchBody("strategic", {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 5}}),
        PatchBody("apply", {"spec": {"replicas": 5}}, force=True),
    ],
)
def test_a_patch_of_somebody_elses_gets_the_version_that_was_read(server: Server, patch: PatchBody) -> None:
    key = create(server, None)
    version = server.get(DEPLOYMENTS, key)["metadata"]["resourceVersion"]
    versioned = add_version(patch, version)
    assert without_version(versioned) == patch.body
    assert server.patch(DEPLOYMENTS, key, versioned)["spec"]["replicas"] == 5
    with pytest.raises(Conflict):
        server.patch(DEPLOYMENTS, key, versioned)


@pytest.mark.parametrize(
    ("form", "body"), [("json", {}), ("merge", []), ("strategic", "x"), ("apply", {"metadata": 1})]
)
def test_what_is_no_patch_of_its_type_is_refused(form: PatchType, body: Any) -> None:
    with pytest.raises(InputError, match=f"for a patch of type {form}"):
        add_version(PatchBody(form, body), "7")


def test_a_strategic_patch_of_a_list_that_is_merged_by_a_key_is_sent_as_a_merge_patch() -> None:
    before = a_workload({"podAntiAffinity": {REQUIRED: [term()]}})
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    assert build_patch(before, after, "strategic").type == "merge"
    assert build_patch(before, edit_workload(before, EDIT), "strategic").type == "strategic"
