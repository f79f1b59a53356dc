"""`wukong manifests vm`: a stream to apply, and what to know beside it."""

from __future__ import annotations

import yaml

from cli.conftest import Wukong

BASIC = ("manifests", "vm", "--image", "wukong:test")


def test_the_stream_installs_the_controller(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--max-priority", "500", "--priority-namespaces", "ops")
    assert run.code == 0, run.err
    documents = list(yaml.safe_load_all(run.out))
    (deployment,) = [document for document in documents if document["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--max-priority=500", "--priority-namespaces=ops"]
    assert any("component load" in line for line in run.notes)


def test_with_load_beside_it_nothing_is_missing(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--components", "vm,load")
    assert run.code == 0, run.err
    assert run.notes == []
    assert "metrics.k8s.io" in run.out


def test_an_unknown_component_is_answered_with_the_known(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--components", "vms")
    assert run.code == 2
    assert 'Did you mean "vm"?' in run.err
