"""What the component spot can be told."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class SpotOptions(msgspec.Struct, frozen=True, rename="camel"):
    kept_notices: Annotated[
        int, Meta(description="Finished notices that stay, for wukong spot history.", ge=0, le=10_000)
    ] = 100
