"""What checkers found: when, about which object, and at which line of the trace. Every checker reports here."""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.world.world import World

MOST = 50  # of one run: a broken rule is usually broken again and again


class Finding(NamedTuple):
    at: float
    subject: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.subject}: {self.text} (at {self.at:g} s, trace line {self.line})"


class Findings:
    def __init__(self, world: World) -> None:
        self.world, self.begin = world, world.clock.now()
        self.all: list[Finding] = []

    def report(self, subject: str, text: str) -> None:
        if len(self.all) < MOST:
            at = round(self.world.clock.now() - self.begin, 3)
            self.all.append(Finding(at, subject, text, self.world.trace.total + 1))
