"""A cluster without our kinds is answered with how to install them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.app.live import follow_installed
from wukong.errors import InputError, NotFound
from wukong.ports import EVERYTHING, Cluster


class Bare:
    """A cluster that has no kind at all."""

    async def list(self, *_: Any, **__: Any) -> None:
        raise NotFound("404 page not found")


async def first(kind: str) -> None:
    await anext(follow_installed(cast(Cluster, Bare()), KINDS.resource_named(kind), Object, EVERYTHING))


def test_a_kind_of_ours_that_is_not_installed_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(
        InputError, match=r"no kind PlacementPolicy. Install it: wukong manifests crds \| kubectl apply"
    ):
        asyncio.run(first("PlacementPolicy"))


def test_any_other_kind_that_is_missing_stays_the_api_servers_answer() -> None:
    with pytest.raises(NotFound):
        asyncio.run(first("Node"))
