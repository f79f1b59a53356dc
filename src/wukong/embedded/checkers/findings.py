"""What a checker found, and the desk where it is noted: the time, the object, and the line of the trace."""

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
        self.world, self.begun = world, world.clock.now()
        self.findings: list[Finding] = []

    def note(self, subject: str, text: str) -> None:
        if len(self.findings) < MOST:
            at = round(self.world.clock.now() - self.begun, 3)
            self.findings.append(Finding(at, subject, text, self.world.trace.total + 1))
