"""Work done in slices: a generator that stops where its caller may do something else, and at the end returns a result.

What may take long (many policies, many rules, thousands of nodes) is written so. A caller with an event loop
(serve.extender) lets others run between two slices; all others call `finish`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Slices = Generator[None, None, T]


def finish(slices: Slices[T]) -> T:
    """Work to the end without a pause; gives the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
