"""Where the programs come from: the cache, a build by a Go of our own making, ready-made ones."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed import build, programs
from testbed.errors import TestbedError, UnavailableError

FAKE_GO = """#!/bin/sh
echo "$1" >> "{calls}"
if [ "$1" = list ]; then printf 'fmt\\nos\\nmain\\n'; exit; fi
{then}
while [ "$1" != -o ]; do shift; done
echo "the program" > "$2"
"""


class Machine:
    """One with an empty cache and a Go that notes what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.said: list[str] = []

    def install_go(self, then: str = "") -> None:
        go = self.folder / "bin" / "go"
        go.write_text(FAKE_GO.format(calls=self.calls, then=then))
        go.chmod(0o755)

    def asked(self) -> list[str]:
        return self.calls.read_text().split() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return Machine(tmp_path)


def test_it_is_built_once_into_the_users_cache_under_the_hash_of_its_source(machine: Machine) -> None:
    machine.install_go()
    program = build.built(machine.said.append)
    assert program == machine.folder / "cache" / "wukong" / "testbed" / build.source_hash() / "controlplane"
    assert program.read_text() == "the program\n"
    assert build.built(machine.said.append) == program
    assert machine.asked() == ["list", "build"]
    assert machine.said[0].startswith("building the Kubernetes v1.35.8 control plane")


def test_kubevirt_is_built_like_the_control_plane_into_a_place_of_its_own(machine: Machine) -> None:
    machine.install_go()
    program = programs.find_kubevirt(machine.said.append)
    assert program == build.cached_program(build.kubevirt())
    assert program.parent != build.cached_program().parent
    assert programs.find_kubevirt(machine.said.append) == program
    assert machine.asked() == ["list", "build"]
    assert machine.said[0].startswith("building KubeVirt v1.7.0")


def test_kubectl_is_of_the_version_of_the_control_plane(machine: Machine) -> None:
    machine.install_go()
    program = programs.find_kubectl(machine.said.append)
    assert program == build.cached_program(build.kubectl())
    assert machine.said[0].startswith("building kubectl v1.35.8, once; about 1 minute on 2 cores")
    kubectl_modules = (build.KUBECTL_SOURCE / "go.mod").read_text("utf-8")
    assert f"k8s.io/kubectl => k8s.io/kubectl v0{build.kubernetes_version().removeprefix('v1')}" in kubectl_modules


def test_those_who_ask_at_once_wait_for_one_build(machine: Machine) -> None:
    machine.install_go()
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: build.built(machine.said.append), range(4)))
    assert len(found) == 1
    assert machine.asked() == ["list", "build"]


def test_a_build_that_fails_says_so_and_leaves_nothing(machine: Machine) -> None:
    machine.install_go(then="echo 'main.go:1: undefined: everything' >&2; exit 1")
    with pytest.raises(TestbedError, match="undefined: everything"):
        build.built(machine.said.append)
    assert not build.cached_program().exists()


def test_the_hash_follows_the_source(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = build.source_hash()
    for name in build.SOURCE_FILES:
        (tmp_path / name).write_bytes((build.SOURCE / name).read_bytes())
    monkeypatch.setattr(build, "SOURCE", tmp_path)
    assert build.source_hash() == before
    with (tmp_path / "main.go").open("a") as file:
        file.write("// changed\n")
    assert build.source_hash() != before


def test_without_go_and_without_programs_it_says_how_to_get_them(machine: Machine) -> None:
    with pytest.raises(UnavailableError, match=r"Install Go .* or set KUBEBUILDER_ASSETS to a folder with etcd"):
        programs.find(machine.said.append)


def ready_made(machine: Machine, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    folder = machine.folder / "assets"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def test_ready_made_programs_are_taken_as_they_are(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ready_made(machine, monkeypatch, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    assert programs.find(machine.said.append).argv == {
        "etcd": [f"{folder}/etcd"],
        "apiserver": [f"{folder}/kube-apiserver"],
        "controller-manager": [f"{folder}/kube-controller-manager"],
        "scheduler": [f"{folder}/kube-scheduler"],
    }


def test_what_ready_made_programs_lack_is_built(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install_go()
    folder = ready_made(machine, monkeypatch, "etcd", "kube-apiserver")
    argv = programs.find(machine.said.append).argv
    assert argv["apiserver"] == [f"{folder}/kube-apiserver"]
    assert argv["scheduler"] == [str(build.cached_program()), "scheduler"]


def test_a_folder_that_lacks_the_first_two_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    ready_made(machine, monkeypatch, "etcd")
    with pytest.raises(UnavailableError, match="has no kube-apiserver"):
        programs.find(machine.said.append)


def test_what_lacks_and_cannot_be_built_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    ready_made(machine, monkeypatch, "etcd", "kube-apiserver")
    with pytest.raises(UnavailableError, match=r"lacks kube-controller-manager, kube-scheduler, and .* no Go"):
        programs.find(machine.said.append)
