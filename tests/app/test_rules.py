"""Rules of one's own: packages are found, broken ones are left out with a warning, and nobody else suffers."""

from __future__ import annotations

import logging
import sys
import types
from importlib.metadata import EntryPoint
from typing import Any

import msgspec
import numpy as np
import pytest

from wukong.api.core import Pod
from wukong.app.rules import GROUP, load_rules, with_offered
from wukong.engine.arrays import Floats
from wukong.placement.fleet import Fleet
from wukong.placement.rule import NoConfig, Rule
from wukong.placement.rules import BUILT_IN

MODULE = "rules_of_somebody_else"


class Fine(Rule[NoConfig]):
    name = "fine"
    config = NoConfig

    def points(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Floats:
        return np.zeros(fleet.size)


class Nameless(Fine):
    name = ""


class Shouting(Fine):
    name = "FINE!"


class Clashing(Fine):
    name = "cost-aware"


class Configless(Rule[NoConfig]):
    name = "configless"

    points = Fine.points


class Plain(Fine):
    name = "plain"
    config = dict  # type: ignore[assignment]


class Idle(Rule[NoConfig]):
    name = "idle"
    config = NoConfig


class Demanding(Fine):
    name = "demanding"

    def __init__(self, what: str) -> None:
        self.what = what


class Exploding(Fine):
    name = "exploding"

    def __init__(self) -> None:
        raise OSError("no such file")


@pytest.fixture(autouse=True)
def somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(MODULE)
    vars(module).update({name: value for name, value in globals().items() if isinstance(value, type)})
    vars(module).update(instance=Fine(), struct=msgspec.Struct)
    monkeypatch.setitem(sys.modules, MODULE, module)


def entry(name: str) -> EntryPoint:
    return EntryPoint(name.lower(), f"{MODULE}:{name}", GROUP)


def warnings(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.levelno == logging.WARNING]


def test_without_packages_there_are_the_built_in_rules(caplog: pytest.LogCaptureFixture) -> None:
    assert load_rules() == BUILT_IN
    assert load_rules() is not BUILT_IN
    assert warnings(caplog) == []


def test_a_rule_of_a_package_stands_beside_the_built_in_ones(caplog: pytest.LogCaptureFixture) -> None:
    rules = with_offered([entry("Fine")])
    assert set(rules) == {*BUILT_IN, "fine"}
    assert isinstance(rules["fine"], Fine)
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Absent", "AttributeError"),
        ("instance", "expected a subclass of wukong.placement.rule.Rule, got <"),
        ("struct", "expected a subclass of wukong.placement.rule.Rule, got <class 'msgspec.Struct'>"),
        ("Nameless", "expected a name such as rack-spread, got ''"),
        ("Shouting", "expected a name such as rack-spread, got 'FINE!'"),
        ("Clashing", "wukong already has a rule named cost-aware"),
        ("Configless", "expected a msgspec.Struct as its config, got None"),
        ("Plain", "expected a msgspec.Struct as its config, got <class 'dict'>"),
        ("Idle", "expected points, refuses or both, got neither"),
        ("Demanding", "Demanding.__init__() missing 1 required positional argument: 'what'"),
        ("Exploding", "OSError: no such file"),
    ],
)
def test_a_broken_one_is_left_out_and_named(name: str, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    rules = with_offered([entry(name), entry("Fine")])
    assert set(rules) == {*BUILT_IN, "fine"}
    assert rules["cost-aware"] is BUILT_IN["cost-aware"]
    (warning,) = warnings(caplog)
    assert warning["msg"] == "a rule was left out"
    assert warning["package"] == MODULE
    assert warning["entry_point"] == f"{name.lower()} = {MODULE}:{name}"
    assert warning["problem"].startswith(problem)


def test_a_package_that_cannot_be_imported_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    absent = EntryPoint("x", "no_such_module_anywhere:Rule", GROUP)
    assert with_offered([absent]) == BUILT_IN
    (warning,) = warnings(caplog)
    assert warning["problem"] == "ModuleNotFoundError: No module named 'no_such_module_anywhere'"


def test_of_two_packages_that_clash_the_first_by_name_wins(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = types.ModuleType("a_twin")
    vars(twin)["Twin"] = type("Twin", (Fine,), {})
    monkeypatch.setitem(sys.modules, "a_twin", twin)
    entries = [entry("Fine"), EntryPoint("twin", "a_twin:Twin", GROUP)]
    for order in (entries, entries[::-1]):
        caplog.clear()
        assert type(with_offered(order)["fine"]).__name__ == "Twin"
        (warning,) = warnings(caplog)
        assert warning["problem"] == "a_twin already has a rule named fine"
