"""What `wukong run` is told, by flags and a file: the same structs, every problem at once, flags before the file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from wukong.api.resources import Key
from wukong.app.components.extender import EXTENDER, ExtenderOptions
from wukong.app.components.load import LOAD, LoadOptions
from wukong.app.components.policy import POLICY
from wukong.app.components.usage import UsageOptions
from wukong.app.options import Option, options_of
from wukong.app.run_config import RUN, Flags, RunConfig, RunOptions, read_run_config, sections
from wukong.errors import InputError
from wukong.runtime.gate import GateSettings


def read(text: str, flags: Flags | None = None) -> RunConfig:
    return read_run_config(flags or {}, yaml.safe_load(text), "run.yaml")


def problems(text: str, flags: Flags | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text, flags)
    return list(caught.value.problems)


def test_a_file_says_all_that_flags_can() -> None:
    config = read("""
        components: [load, extender, policy]
        lease: wukong-system/wukong
        leaseSeconds: 30
        probes: 0.0.0.0:8080
        logFormat: json
        dryRun: false
        usage: {prometheus: "http://prometheus:9090", staleSeconds: 60}
        load: {labelPrefix: usage.example.com, labelStep: 10}
        extender: {plainHttp: true, criticalPriority: 7, gpuResources: [nvidia.com/gpu], defaultStrategy: none}
        gate: {mode: Observe, neverMoveNamespaces: [kube-system], evictionsPerMinute: 10}
    """)
    assert config.components == (LOAD, EXTENDER, POLICY)
    assert config.run == RunOptions(
        components=("load", "extender", "policy"),
        lease="wukong-system/wukong",
        lease_seconds=30,
        probes="0.0.0.0:8080",
        log_format="json",
    )
    assert config.options["usage"] == UsageOptions(prometheus="http://prometheus:9090", stale_seconds=60.0)
    assert config.options["load"] == LoadOptions(label_prefix="usage.example.com", label_step=10)
    assert config.options["extender"] == ExtenderOptions(
        plain_http=True, critical_priority=7, gpu_resources=("nvidia.com/gpu",), default_strategy="none"
    )
    assert config.gate == GateSettings(mode="Observe", never_move_namespaces=("kube-system",), evictions_per_minute=10)


def test_what_nobody_says_is_as_the_structs_have_it() -> None:
    config = read("components: [load]\nusage:\n")
    assert config.options["load"] == LoadOptions()
    assert config.options["usage"] == UsageOptions()
    assert config.run.lease_key == Key("default", "wukong")


def test_a_flag_wins_over_the_file() -> None:
    flags: Flags = {(RUN, "components"): ("policy",), ("load", "label_step"): 20}
    config = read("components: [load]\nload: {labelStep: 10, quietSeconds: 5}\n", flags)
    assert config.components == (POLICY,)
    assert config.options["load"] == LoadOptions(label_step=20, quiet_seconds=5.0)


def test_every_problem_of_a_file_is_told_at_once_with_place_expectation_and_fix() -> None:
    found = problems("""
        components: [lod, policy]
        lese: a/b
        lease: wukong
        leaseSeconds: 1
        logFormat: yaml
        probes: here
        usage: {staleSeconds: long}
        load: {labelStep: 99, labelPrefx: a}
        extendr: {plainHttp: true}
        extender: [plainHttp]
        gate: {mode: observe, evictionsPerMinute: true}
    """)
    assert found == [
        'run.yaml: $.lese: unknown field. Did you mean "lease"?',
        "run.yaml: $.leaseSeconds: expected an integer from 4 to 3600, got 1.",
        "run.yaml: $.logFormat: expected one of text, json, got 'yaml'.",
        'run.yaml: $.extendr: unknown field. Did you mean "extender"?',
        "run.yaml: $.usage.staleSeconds: expected a number from 1 to 86400, got 'long'.",
        "run.yaml: $.load.labelStep: expected an integer from 1 to 50, got 99.",
        'run.yaml: $.load.labelPrefx: unknown field. Did you mean "labelPrefix"?',
        "run.yaml: $.extender: expected a mapping of fields, got ['plainHttp'].",
        "run.yaml: $.gate.mode: expected one of Enforce, Observe, got 'observe'. Did you mean \"Observe\"?",
        "run.yaml: $.gate.evictionsPerMinute: expected an integer from 1, got True.",
        "run.yaml: $.components: unknown component 'lod'. Did you mean \"load\"? "
        "Known: load, extender, policy, admission, vm, rollout, spot, ledger, scheduler.",
        "run.yaml: $.lease: expected NAMESPACE/NAME, got 'wukong'.",
        "run.yaml: $.probes: expected HOST:PORT such as 127.0.0.1:8080, or :8080 for all addresses, got 'here'.",
    ]


def test_a_problem_is_told_by_the_name_under_which_it_was_written() -> None:
    flags: Flags = {(RUN, "components"): ("extender",), ("usage", "prometheus"): "prometheus"}
    assert problems("extender: {cert: a.pem}\nlease: x\n", flags) == [
        "run.yaml: $.lease: expected NAMESPACE/NAME, got 'x'.",
        "run.yaml: $.extender.key: the extender speaks mutual TLS and needs all of $.extender.cert, $.extender.key and "
        "$.extender.clientCa. Make them with `wukong manifests extender`, or try with $.extender.plainHttp.",
        "--prometheus: expected an address such as http://prometheus:9090, got 'prometheus'.",
    ]


def test_flags_alone_are_told_as_flags() -> None:
    flags: Flags = {(RUN, "components"): ("extender",), (RUN, "lease"): "x"}
    with pytest.raises(InputError) as caught:
        read_run_config(flags)
    assert caught.value.problems == (
        "--lease: expected NAMESPACE/NAME, got 'x'.",
        "--extender-cert: the extender speaks mutual TLS and needs all of --extender-cert, --extender-key and "
        "--extender-client-ca. Make them with `wukong manifests extender`, or try with --extender-plain-http.",
    )


NUMBERS = [
    (section, option)
    for section, struct in sections().items()
    for option in options_of(struct)
    if option.kind in ("number", "integer")
]


@pytest.mark.parametrize("value", ["-.inf", ".inf", ".nan", "-5.5", "1e400", "-1" + "0" * 400, "true", "[]"])
@pytest.mark.parametrize(("section", "option"), NUMBERS, ids=lambda value: getattr(value, "key", value))
def test_no_number_of_a_file_may_be_what_no_number_is(section: str, option: Option, value: str) -> None:
    field = f"{{{option.key}: {value}}}"
    (problem,) = problems(
        f"{section}: {field}\ncomponents: [load]" if section else f"{option.key}: {value}\ncomponents: [load]"
    )
    dot = "." if section else ""
    assert problem.startswith(f"run.yaml: ${dot}{section}.{option.key}: expected {option.expectation}, got ")


@pytest.mark.parametrize(("value", "expected"), [("0", "0"), ("-5", "-5"), (".nan", "nan"), (".inf", "inf")])
def test_usage_is_measured_now_and_then(value: str, expected: str) -> None:
    assert problems(f"components: [load]\nusage: {{measureSeconds: {value}}}") == [
        f"run.yaml: $.usage.measureSeconds: expected a number from 0.1 to 3600, got {expected}."
    ]


@pytest.mark.parametrize(("text", "expected"), [("[load]", "expected a mapping"), ("load", "expected a mapping")])
def test_a_file_that_is_no_mapping_is_refused(text: str, expected: str) -> None:
    assert expected in problems(text)[0]


def test_a_file_that_names_no_component_is_refused() -> None:
    assert problems("lease: a/b") == [
        "run.yaml: $.components: expected some of load, extender, policy, admission, vm, rollout, spot, ledger, "
        "scheduler, got none."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "components: [load]\nusage: {prometheus: ['http://me:S3CRET@p']}",
        "components: [load]\nusage: {prometheus: 'ftp://me:S3CRET@p'}",
        "components: [load]\nusage: ['http://me:" + "x" * 80 + "S3CRET@p']",
        "['http://me:S3CRET@p']",
    ],
)
def test_no_password_of_a_file_is_told(text: str) -> None:
    told = " ".join(problems(text))
    assert "S3CRET" not in told
    assert "x" * 20 not in told


@pytest.mark.parametrize("text", ["dryRun: true", "leaderElection: false"])
def test_who_only_tries_or_asks_nobody_takes_no_lease(text: str) -> None:
    assert read(f"components: [load]\n{text}\n").run.lease_key is None


def test_every_field_has_a_flag_of_its_own() -> None:
    flags = [option.flag for struct in sections().values() for option in options_of(struct)]
    assert len(flags) == len(set(flags))
    assert {"--prometheus", "--label-step", "--extender-cert", "--no-leader-election", "--dry-run"} <= set(flags)


def defaults(struct: Any) -> dict[str, Any]:
    return {option.field: option.default for option in options_of(struct)}


@pytest.mark.parametrize("struct", sections().values())
def test_the_defaults_of_flags_are_the_structs_own(struct: Any) -> None:
    assert struct(**defaults(struct)) == struct()
