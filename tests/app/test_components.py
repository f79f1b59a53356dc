"""Components are chosen by name; a wrong name is answered with the right ones. Each is whole."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wukong.api.kinds import NODE_USAGES
from wukong.app.assemble import assemble
from wukong.app.component import Component, Context, list_permissions, with_needs
from wukong.app.component_choice import EMBEDDED_COMPONENTS, LIVE_COMPONENTS, choose_components, split_names
from wukong.app.components import COMPONENTS
from wukong.app.components.extender import EXTENDER
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.load import LOAD
from wukong.app.components.policy import POLICY
from wukong.app.components.usage import USAGE, UsageOptions
from wukong.app.components.usage.component import METRICS_API
from wukong.app.components.wukongs import WUKONG_SETTINGS
from wukong.app.live import WallClock
from wukong.app.options import options_of
from wukong.app.permissions import list_lease_permissions
from wukong.controllers.load.controller import Load
from wukong.errors import InputError
from wukong.placement.rules import BUILT_IN
from wukong.ports import Cluster
from wukong.runtime import Metrics
from wukong.state import State


def choose(text: str) -> list[Component[Any]]:
    return choose_components(split_names(text), "--components")


def a_context(**options: Any) -> Context:
    return Context(State(), Metrics(), WallClock(), BUILT_IN, options)


def test_components_are_listed_once_however_often_they_are_named() -> None:
    assert [component.name for component in choose(" load ,load")] == ["load"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", "expected some of load"),
        ("laod", 'Did you mean "load"?'),
        ("kube-scheduler", "unknown component 'kube-scheduler'"),
        ("usage", "unknown component 'usage'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_ones(names: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(names)
    assert expected in str(caught.value)
    assert "load, extender, policy" in str(caught.value)


def test_what_only_others_need_cannot_be_named_and_what_runs_embedded_only_not_on_a_cluster() -> None:
    names = ["load", "extender", "policy", "admission", "vm", "rollout", "spot", "ledger", "scheduler"]
    assert list(LIVE_COMPONENTS) == names
    assert list(EMBEDDED_COMPONENTS) == names


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=list(COMPONENTS))
def test_every_component_is_whole_and_every_option_of_it_is_explained(component: Component[Any]) -> None:
    assembly = assemble([component], a_context())
    assert set(assembly.components) == {component, *component.needs}
    assert component.help.endswith(".")
    assert all(option.help for option in options_of(component.options))


def test_flags_are_unambiguous() -> None:
    flags = [option.flag for component in COMPONENTS.values() for option in options_of(component.options)]
    assert len(flags) == len(set(flags))


def test_what_several_need_comes_along_once() -> None:
    assert with_needs([LOAD, EXTENDER]) == [LOAD, USAGE, EXTENDER, WUKONG_SETTINGS]
    assembly = assemble([LOAD, EXTENDER], a_context())
    [source] = assembly.build_sources(cast(Cluster, None))
    assert source.resource == NODE_USAGES


def test_a_component_reads_the_options_of_those_it_needs() -> None:
    (controller,) = assemble([LOAD], a_context(usage=UsageOptions(stale_seconds=7.0))).controllers
    assert isinstance(controller, Load)
    assert controller.settings.stale_seconds == 7.0


def test_permissions_are_of_all_and_those_of_needed_ones_come_last() -> None:
    assert list_permissions([LOAD])[:2] == list(list_lease_permissions("wukong"))
    assert list_permissions([LOAD, POLICY])[-1] == METRICS_API
    assert METRICS_API not in list_permissions([LOAD], {"usage": UsageOptions(prometheus="http://p")})
    assert not any(permission.resource == "leases" for permission in list_permissions([EXTENDER]))  # it need not lead


def test_a_scheduler_gets_the_extensions_of_its_process_and_nobody_else_has_them_built() -> None:
    assert len(assemble([KUBE_SCHEDULER, EXTENDER], a_context()).context.extensions) == 1
    assert assemble([EXTENDER], a_context()).context.extensions == ()
    (controller,) = assemble([KUBE_SCHEDULER, EXTENDER], a_context()).controllers
    assert {"PlacementPolicy", "ClusterPlacementPolicy"} <= {watch.resource.kind for watch in controller.watches}
