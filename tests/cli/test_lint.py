"""`wukong lint`: files in, a table or a document out, and an exit code that a pipeline can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wukong.cli.main import main

ROOT = Path(__file__).parents[2]
HEAD = "apiVersion: vm.novasphere.dev/v1alpha1\nkind: Wukong\n"
GOOD = HEAD + "metadata: {name: web}\nspec: {disks: [{name: root, containerDisk: {image: x}}]}\n"


def write(folder: Path, text: str) -> str:
    path = folder / "vm.yaml"
    path.write_text(text)
    return str(path)


def test_what_is_right_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", write(tmp_path, GOOD)]) == 0
    assert capsys.readouterr().out == "1 Wukong: nothing to say.\n"


def test_an_error_ends_with_1_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", write(tmp_path, GOOD.replace("spec: {", "spec: {cpu: 0, "))]) == 1
    output = capsys.readouterr().out
    assert "error" in output
    assert "default/web  $.spec.cpu  expected 1 to 512, got 0." in output
    assert output.endswith("1 Wukong: 1 error.\n")


def test_a_warning_does_not_fail_a_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", write(tmp_path, HEAD + "metadata: {name: web}\nspec: {}\n"), "-n", "shop"]) == 0
    assert "warning   shop/web  $.spec.disks  there is nothing to boot from." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        (GOOD.replace("spec: {", "spec: {replica: 2, "), "$.spec.replica", 'Did you mean "replicas"?'),
        (GOOD.replace("spec: {", "spec: {cpu: two, "), "$.spec.cpu", "expected int, got str"),
        (GOOD.replace("v1alpha1", "v1"), "$.apiVersion", "expected vm.novasphere.dev/v1alpha1"),
        (GOOD.replace("name: web", "labels: {}"), "$.metadata.name", "expected a name"),
        (HEAD + "metadata: {name: web}\n", "$.spec", "expected what the machines are"),
    ],
)
def test_what_is_written_wrongly_is_an_error_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, path: str, says: str
) -> None:
    assert main(["lint", "-f", write(tmp_path, text), "-o", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [
        finding for finding in findings if finding["path"] == path and says in f"{finding['text']} {finding['fix']}"
    ], findings


def test_a_program_reads_counts_and_findings(capsys: pytest.CaptureFixture[str]) -> None:
    files = [word for path in sorted((ROOT / "examples" / "vm").glob("*.yaml")) for word in ("-f", str(path))]
    assert main(["lint", *files, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["wukongs"] == 7
    assert document["counts"] == {"error": 0, "warning": 8, "note": 1}
    assert {"severity", "subject", "path", "text", "fix"} == document["findings"][0].keys()


def test_a_cluster_counts_its_zones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    term = "{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: web}}}"
    apart = f"scheduling: {{podAntiAffinity: {{required: [{term}]}}}}"
    text = GOOD.replace("spec: {", f"spec: {{replicas: 4, labels: {{app: web}}, {apart}, ")
    assert main(["lint", "-f", write(tmp_path, text), "-s", str(ROOT / "examples" / "cluster.yaml")]) == 1
    assert "4 machines must be apart by topology.kubernetes.io/zone, and there are 3 domains" in capsys.readouterr().out


def test_other_kinds_are_left_out_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    assert main(["lint", "-f", write(tmp_path, text)]) == 0
    assert "left out what is no Wukong: ConfigMap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "expected a Wukong, got none"),
        ("{", "vm.yaml: "),
    ],
)
def test_nothing_to_lint_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    assert main(["lint", "-f", write(tmp_path, text)]) == 2
    assert says in capsys.readouterr().err


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-f", "-", "-f", "-"]) == 2
    assert "only once" in capsys.readouterr().err
