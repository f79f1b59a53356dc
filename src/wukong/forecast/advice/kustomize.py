"""Advice as files: a kustomize component of its patches, which an overlay names under `components`. Pure.

Targets go by kind and name, so that it does not matter whether the overlay or its base sets the namespace. What is no
patch (nodes to add, commands to give) is told in comments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wukong.app.install.text import as_yaml
from wukong.forecast.fields import Advice
from wukong.ports import Document

_UNSAFE = re.compile(r"[^a-z0-9.-]+")


def choose_writable(advice: Sequence[Advice]) -> Advice | None:
    """The best advice that is a patch."""
    return next((entry for entry in advice if entry.patches), None)


def build_files(advice: Advice) -> dict[str, str]:
    """File name → text: kustomization.yaml, and one file for each patch."""
    files: dict[str, str] = {}
    entries: list[Document] = []
    for patch in advice.patches:
        name = _name_file(patch, files)
        files[name] = as_yaml([patch])
        entries.append({"path": name, "target": _build_target(patch)})
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": entries}
    return {"kustomization.yaml": _build_comment(advice) + as_yaml([component]), **files}


def _name_file(patch: Document, taken: dict[str, str]) -> str:
    stem = _UNSAFE.sub("-", f"{patch['kind']}-{patch['metadata']['name']}".lower())
    names = (f"{stem}.yaml", *(f"{stem}-{number}.yaml" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _build_target(patch: Document) -> Document:
    group, _, version = patch["apiVersion"].rpartition("/")
    head = {"group": group} if group else {}
    return {**head, "version": version, "kind": patch["kind"], "name": patch["metadata"]["name"]}


def _build_comment(advice: Advice) -> str:
    nodes = [f"Needs {entry.count} more like node {entry.like}." for entry in advice.nodes]
    commands = [f"Needs: {command}" for command in advice.commands]
    return "".join(f"# {' '.join(line.split())}\n" for line in (advice.title, advice.text, *nodes, *commands))
