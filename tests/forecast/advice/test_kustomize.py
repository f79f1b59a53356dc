"""Advice as a kustomize component: a file for each patch, found by kind and name; what is no patch is a comment."""

from __future__ import annotations

import yaml

from forecast.situations import a_budget, a_deployment
from wukong.forecast.advice.kustomize import build_files, choose_writable
from wukong.forecast.fields import Advice, NeededNodes


def an_advice(*patches: object, **more: object) -> Advice:
    fields = {"code": "x", "title": "Do this.", "text": "It costs\nthat.", "gives_up": "money", **more}
    return Advice(patches=list(patches), **fields)  # type: ignore[arg-type]


def test_each_patch_is_a_file_and_the_component_names_them_all() -> None:
    deployment, budget = a_deployment(2), a_budget(maxUnavailable=1)
    nodes = [NeededNodes(like="n1", type="", count=2)]
    files = build_files(an_advice(deployment, budget, nodes=nodes, commands=["kubectl uncordon n2"]))
    assert sorted(files) == ["deployment-web.yaml", "kustomization.yaml", "poddisruptionbudget-web.yaml"]
    assert yaml.safe_load(files["deployment-web.yaml"]) == deployment
    component = yaml.safe_load(files["kustomization.yaml"])
    assert (component["apiVersion"], component["kind"]) == ("kustomize.config.k8s.io/v1alpha1", "Component")
    assert component["patches"] == [
        {
            "path": "deployment-web.yaml",
            "target": {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"},
        },
        {
            "path": "poddisruptionbudget-web.yaml",
            "target": {"group": "policy", "version": "v1", "kind": "PodDisruptionBudget", "name": "web"},
        },
    ]
    comments = [line for line in files["kustomization.yaml"].splitlines() if line.startswith("#")]
    assert comments == [
        "# Do this.",
        "# It costs that.",
        "# Needs 2 more like node n1.",
        "# Needs: kubectl uncordon n2",
    ]


def test_two_objects_of_one_kind_and_name_and_a_name_that_is_a_path_have_files_of_their_own() -> None:
    evil = a_deployment(app="../../etc/passwd")
    files = build_files(an_advice(a_deployment(), a_deployment(2), evil))
    assert sorted(files) == [
        "deployment-..-..-etc-passwd.yaml",
        "deployment-web-2.yaml",
        "deployment-web.yaml",
        "kustomization.yaml",
    ]


def test_the_best_advice_that_is_a_patch_is_written() -> None:
    nodes, patch = an_advice(), an_advice(a_deployment())
    assert choose_writable([nodes, patch]) is patch
    assert choose_writable([nodes]) is None
