"""Reading snapshots: what comes out of files, and how little of it is kept."""

from __future__ import annotations

import gc
import gzip
import io
import json
import sys
from collections import Counter as Tally
from pathlib import Path

import pytest

from cli.manifests import Manifest, kubectl_list, node, pod, write_json, write_yaml
from wukong.cluster import (
    pause_garbage_collector,
    read_lines,
    read_manifests,
    read_objects,
    read_settings,
    read_text,
)
from wukong.errors import InputError

PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}


def test_objects_come_by_kind_in_the_order_they_were_read(tmp_path: Path) -> None:
    objects = read_objects(str(write_json(tmp_path / "c.json", node("b"), pod("p"), node("a"))))
    assert [subject.key for subject in objects.nodes] == ["b", "a"]
    assert [subject.key for subject in objects.pods] == ["default/p"]


def test_files_of_a_directory_are_read_by_name(tmp_path: Path) -> None:
    write_yaml(tmp_path / "2.yaml", node("second"))
    write_json(tmp_path / "1.json", node("first"))
    (tmp_path / "3.json.gz").write_bytes(gzip.compress(json.dumps(node("third")).encode()))
    assert [subject.key for subject in read_objects(str(tmp_path)).nodes] == ["first", "second", "third"]


@pytest.mark.parametrize("ending", ["json", "yaml", "yml", "json.gz", "yaml.gz", "yml.gz"])
def test_every_file_of_a_known_format_below_a_directory_is_read(ending: str, tmp_path: Path) -> None:
    (tmp_path / "deeper" / "still").mkdir(parents=True)
    text = json.dumps(node("a")).encode()
    path = tmp_path / "deeper" / "still" / f"c.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    assert [subject.key for subject in read_objects(str(tmp_path)).nodes] == ["a"]


def test_hidden_files_other_formats_and_directories_are_left_out(tmp_path: Path) -> None:
    """An editor's copy beside a file, and what git keeps in its directory, are no part of a cluster."""
    write_json(tmp_path / "c.json", node("a"))
    write_json(tmp_path / ".c.json", node("b"))
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    write_json(tmp_path / ".git" / "objects" / "c.json", node("c"))
    (tmp_path / "README.md").write_text("no object", "utf-8")
    (tmp_path / "directory.json").mkdir()
    assert [subject.key for subject in read_objects(str(tmp_path)).nodes] == ["a"]


def test_a_directory_that_is_named_itself_may_be_hidden(tmp_path: Path) -> None:
    (tmp_path / ".cluster").mkdir()
    write_json(tmp_path / ".cluster" / "c.json", node("a"))
    assert [subject.key for subject in read_objects(str(tmp_path / ".cluster")).nodes] == ["a"]


def test_nulls_mean_nothing_as_go_writes_them(tmp_path: Path) -> None:
    document = {**pod("p", nodeSelector=None, tolerations=None), "status": None}
    (subject,) = read_objects(str(write_json(tmp_path / "c.json", document))).pods
    assert (subject.spec.node_selector, subject.status.phase) == ({}, "")


def test_kinds_that_do_not_decide_placement_are_counted(tmp_path: Path) -> None:
    skipped: Tally[str] = Tally()
    others = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": str(number)}} for number in range(3)]
    read_objects(str(write_json(tmp_path / "c.json", node("a"), *others)), skipped)
    assert skipped == {"ConfigMap": 3}


@pytest.mark.parametrize(
    ("api_version", "is_ours"), [("", True), ("v1", True), ("serving.knative.dev/v1", False), ("apps/v1", False)]
)
def test_a_kind_is_ours_only_in_its_own_group(api_version: str, is_ours: bool, tmp_path: Path) -> None:
    service = {"apiVersion": api_version, "kind": "Service", "metadata": {"name": "s"}}
    path = str(write_json(tmp_path / "c.json", node("a"), service))
    if api_version == "apps/v1":  # a group we know, and it has no Service
        with pytest.raises(InputError, match=r"\$.apiVersion: expected v1 for kind Service, got 'apps/v1'"):
            read_objects(path)
    else:
        assert len(read_objects(path).services) == is_ours


def test_annotations_and_volumes_without_influence_are_dropped(tmp_path: Path) -> None:
    volumes = [{"name": "token-x7k2p", "projected": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    document = pod("p", volumes=volumes)
    document["metadata"]["annotations"] = {"big": "x" * 1000}
    (subject,) = read_objects(str(write_json(tmp_path / "c.json", document))).pods
    assert subject.metadata.annotations == {}
    assert [volume.name for volume in subject.spec.volumes] == ["d"]


def test_pods_that_are_alike_share_what_is_alike(tmp_path: Path) -> None:
    first, second = (
        {**pod(name, on=on, priority=0), "status": {"phase": "Running", "startTime": start}}
        for name, on, start in (("p", "a", "2026-01-01T00:00:00Z"), ("q", "b", "2026-01-02T00:00:00Z"))
    )
    first_pod, second_pod = read_objects(str(write_json(tmp_path / "c.json", first, second))).pods
    assert first_pod.spec.containers is second_pod.spec.containers
    assert first_pod.metadata.labels is second_pod.metadata.labels
    assert (first_pod.spec.node_name, second_pod.spec.node_name) == ("a", "b")
    assert (first_pod.status.start_time, second_pod.status.start_time) == (
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    )


def test_a_problem_shared_by_pods_that_are_alike_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_objects(str(write_json(tmp_path / "c.json", pod("p", cpu="x"), pod("q", cpu="x"))))
    assert len(caught.value.problems) == 1


def test_a_node_written_by_hand_can_give_all_it_has(tmp_path: Path) -> None:
    document = node("a")
    del document["status"]["allocatable"]
    (subject,) = read_objects(str(write_json(tmp_path / "c.json", document))).nodes
    assert subject.status.allocatable == subject.status.capacity != {}


def limited(**spec: object) -> Manifest:
    document = pod("p", **{"on": "a", **spec})  # type: ignore[arg-type]
    document["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
    return document


def test_a_pod_written_by_hand_gets_what_the_api_server_adds(tmp_path: Path) -> None:
    document = limited(priorityClassName="high")
    (subject,) = read_objects(str(write_json(tmp_path / "c.json", PRIORITY, document))).pods
    assert (subject.spec.priority, subject.spec.containers[0].resources.requests) == (7, {"cpu": "3"})


def test_a_stored_pod_is_taken_as_it_is(tmp_path: Path) -> None:
    (subject,) = read_objects(str(write_json(tmp_path / "c.json", limited(priority=0)))).pods
    assert subject.spec.containers[0].resources.requests == {}


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    document = limited(cpu="nonsense")
    (subject,) = read_manifests(str(write_yaml(tmp_path / "p.yaml", document)), Tally(), lambda subject: None).pods
    assert (subject.spec.priority, subject.spec.containers[0].resources.requests) == (None, {})


def test_yaml_in_braces_is_not_mistaken_for_json(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: a}}", "utf-8")
    assert [subject.key for subject in read_objects(str(tmp_path / "c.yaml")).nodes] == ["a"]


def test_text_of_powershell_is_read(tmp_path: Path) -> None:
    """`kubectl get -o json > file` writes UTF-16 there."""
    (tmp_path / "c.json").write_text(json.dumps(kubectl_list(node("a")), indent=4), "utf-16")
    assert [subject.key for subject in read_objects(str(tmp_path / "c.json")).nodes] == ["a"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x7fELF\0\0", "expected text, got a binary file"),
        (gzip.compress(b"\0" * 100, mtime=0), "expected text, got a binary file"),
        (b'{"kind": "List", \n"items": "\xff"}', "line 2, column 11: expected UTF-8 text, got the byte 0xff"),
        (b'{"kind": "Node", "kind": "Pod"}', "line 1, column 18: 'kind' is there twice in one map"),
        (b'{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": 1e400}}', "number out of range. Mend the number."),
        (b'{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": ' + b"1" * 5000 + b"}}", "out of range"),
    ],
)
def test_what_is_no_snapshot_is_told_with_its_place(tmp_path: Path, content: bytes, problem: str) -> None:
    refuses(tmp_path, content, problem)


def test_what_unpacks_to_hundreds_of_times_its_size_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b"{" + b" " * (64 << 20), 9, mtime=0)  # here, for every worker imports what a table has
    refuses(tmp_path, bomb, "gzip that unpacks to hundreds of times its size")


def refuses(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_objects(str(tmp_path / "c.json"))
    assert "c.json: " in str(caught.value)
    assert problem in str(caught.value)


def test_a_device_is_refused_by_its_first_bytes() -> None:
    with pytest.raises(InputError, match="/dev/zero: expected text, got a binary file"):
        read_text("/dev/zero")


def test_a_large_file_is_not_read_where_a_small_one_belongs(tmp_path: Path) -> None:
    with (tmp_path / "prices.yaml").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(InputError, match=r"prices\.yaml: expected at most 4 MiB, got more"):
        read_settings(str(tmp_path / "prices.yaml"))


def test_a_snapshot_of_more_than_two_gibibytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "c.json").open("wb") as file:
        file.truncate((2 << 30) + 1)  # a hole: it takes no room on the disk
    with pytest.raises(InputError, match=r"c\.json: expected at most 2 GiB, got more"):
        read_text(str(tmp_path / "c.json"))


@pytest.mark.slow
def test_a_line_of_a_recording_may_have_64_mebibytes_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"x" * ((64 << 20) - 1) + b"\n" + b"x" * ((64 << 20) + 1))
    lines = read_lines(str(path))
    assert len(next(lines)[1]) == 64 << 20
    with pytest.raises(InputError, match=r"r\.jsonl: after line 2: expected lines of at most 64 MiB, got a longer one"):
        next(lines)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.cluster.files.MOST_LINE_BYTES", 1 << 10)
    (tmp_path / "r.jsonl").write_bytes(b"{}\n" + b"x" * 2000)
    with pytest.raises(InputError, match=r"r\.jsonl: after line 2: expected lines of at most"):
        list(read_lines(str(tmp_path / "r.jsonl")))


def test_a_name_with_a_zero_byte_is_told() -> None:
    with pytest.raises(InputError, match="cannot be read: embedded null byte"):
        read_text("a\0b")


def test_nesting_beyond_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"spec":' * 100_000, "utf-8")
    with pytest.raises(InputError, match="nested too deeply"):
        read_objects(str(tmp_path / "c.json"))


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_text(str(tmp_path))


def test_lines_come_with_their_numbers_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\n  \nfour")
    assert list(read_lines(str(path))) == [(1, b"one\n"), (4, b"four")]
    path.write_bytes(gzip.compress(b"one\n\ntwo"))
    assert list(read_lines(str(path))) == [(1, b"one\n"), (3, b"two")]


def test_reading_lines_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    progress: list[tuple[int, int]] = []
    list(read_lines(str(path), lambda done, total: progress.append((done, total))))
    assert progress[-1] == (8, 8)


def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"one\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_lines("-")) == [(1, b"one\n")]
    assert not stdin.closed


def test_the_collector_is_back_afterwards(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_objects(str(tmp_path / "none.json"))
    assert gc.isenabled()
    with pause_garbage_collector():
        assert not gc.isenabled()
        read_objects(str(write_json(tmp_path / "c.json", node("a"))))
        assert not gc.isenabled()
    assert gc.isenabled()


def pack(size: int, packed_size: int) -> bytes:
    """Gzip of so many bytes, brought to its size by the name of the file in its head."""
    packed = gzip.compress(b" " * size, 9, mtime=0)
    name = b"n" * (packed_size - len(packed) - 1)
    return packed[:3] + b"\x08" + packed[4:10] + name + b"\0" + packed[10:]


@pytest.mark.parametrize(
    ("size", "ratio", "is_refused"), [(40_000, 250, False), (40_250, 250.5, True), (30_000, 300, False)]
)
def test_gzip_may_be_up_to_250_times_as_large_as_packed_once_it_is_large(
    size: int, ratio: float, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wukong.cluster.files._LARGE", 30_000)
    path = tmp_path / "file.json.gz"
    path.write_bytes(pack(size, int(size / ratio)))
    if is_refused:
        with pytest.raises(InputError, match="hundreds of times its size"):
            read_text(str(path))
    else:
        assert len(read_text(str(path))) == size
