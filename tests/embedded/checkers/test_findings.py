"""What a finding says, and that a rule which is broken again and again does not fill the memory."""

from __future__ import annotations

from wukong.embedded.checkers.findings import MOST, Findings
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World


def a_world() -> World:
    clock = VirtualClock()
    return World(server=Server(clock), clock=clock)


def test_a_finding_says_when_about_what_and_where_in_the_trace() -> None:
    world = a_world()
    world.run(seconds=5.0)
    findings = Findings(world)
    world.run(seconds=90.0)
    findings.report("pod default/web", "is not what it was")
    assert [str(finding) for finding in findings.all] == ["pod default/web: is not what it was (at 90 s, trace line 1)"]


def test_only_the_first_are_kept() -> None:
    findings = Findings(a_world())
    for number in range(MOST + 5):
        findings.report("pods", str(number))
    assert [finding.text for finding in findings.all] == [str(number) for number in range(MOST)]
