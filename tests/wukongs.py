"""Builders of Wukongs and of what is made of them: `template_spec_of(a_wukong(cpu=2))`."""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.vm import Wukong
from wukong.placement.vm import VmSettings, build_virtual_machine, find_wukong_problems
from wukong.ports import Document


def a_wukong(name: str = "web", **spec: Any) -> Wukong:
    metadata = {"name": name, "namespace": "shop", "uid": "u-1"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Wukong)


def build(wukong: Wukong, **settings: Any) -> Document:
    assert find_wukong_problems(wukong, {}) == []
    return build_virtual_machine(wukong, wukong.metadata.name, VmSettings(**settings))


def template_spec_of(wukong: Wukong, **settings: Any) -> Document:
    spec: Document = build(wukong, **settings)["spec"]["template"]["spec"]
    return spec
