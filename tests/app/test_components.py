"""Components are chosen by name; a wrong name is answered with the right ones."""

from __future__ import annotations

import pytest

from wukong.app.components import COMPONENTS, choose
from wukong.controllers import CONTROLLERS
from wukong.errors import InputError


def test_components_are_listed_once_however_often_they_are_named() -> None:
    assert [component.name for component in choose(" load ,load")] == ["load"]


@pytest.mark.parametrize(("names", "expected"), [("", "expected some of load"), ("laod", 'Did you mean "load"?')])
def test_a_wrong_name_is_answered_with_the_right_ones(names: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(names)
    assert expected in str(caught.value)


def test_every_component_is_made_of_controllers_there_are() -> None:
    named = {name for component in COMPONENTS.values() for name in component.controllers}
    assert named == set(CONTROLLERS)
