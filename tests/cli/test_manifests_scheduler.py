"""`wukong manifests scheduler`: a stream to apply, with the names and options it was given."""

from __future__ import annotations

import yaml

from cli.conftest import Wukong

BASIC = ("manifests", "scheduler", "--image", "wukong:test")


def test_the_stream_installs_a_scheduler_of_these_names(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--scheduler-name", "a,b", "--default-strategy", "none")
    assert run.code == 0, run.err
    (deployment,) = [document for document in yaml.safe_load_all(run.out) if document["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][:3] == ["run", "--components=scheduler", "--scheduler-name=a,b"]
    assert container["args"][-1] == "--default-strategy=none"


def test_what_is_usual_is_not_said(wukong: Wukong) -> None:
    assert "--default-strategy" not in wukong(*BASIC).out


def test_a_name_that_is_kube_schedulers_own_is_refused(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--scheduler-name", "default-scheduler")
    assert run.code == 2
    assert "kube-scheduler binds those pods" in run.err
