"""Settings for all tests: hypothesis without deadlines, figures at the end of a run, the fixtures of the test bed.

Python's collector of cyclic garbage never looks at what was there before the first test: all modules and thousands of
tests, which it would walk over again and again for a fifth of the processor time. And it rarely looks at everything.

`pytest --quick` leaves out tests that need a control plane (testbed/pytest_plugin.py marks them by their fixtures) and
those marked `slow`, and says at the end how many: `make quick`. Properties are tried with a quarter of the examples.
"""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["testbed.pytest_plugin", "testbed.costs", "testbed.worker_groups"]

settings.register_profile(
    "wukong", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("quick", settings.get_profile("wukong"), max_examples=25)
settings.load_profile("wukong")
FIGURE = "figure"  # record_property(FIGURE, text) shows the text in the summary of the run, also under xdist
LEFT_OUT = "left_out"
FULL_COLLECTION_EVERY = 50  # collections of the generation before, not 10
_figures: list[str] = []
_left_out: list[str] = []  # the same line from every worker
_frozen: list[bool] = []  # [True] while what was there before the first test is; to count it takes a fifth of a second
_unfreeze = gc.unfreeze


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out tests that need a control plane or are slow")


def pytest_configure(config: pytest.Config) -> None:
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, FULL_COLLECTION_EVERY)
    gc.unfreeze = unfreeze
    if config.getoption("--quick"):
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    with_control_plane = [item for item in items if item.get_closest_marker("control_plane")]
    slow = [item for item in items if item.get_closest_marker("slow") and item not in with_control_plane]
    left_out = {*with_control_plane, *slow}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    line = (
        f"Left out: {len(with_control_plane)} tests that need a control plane, Prometheus or Chromium, "
        f"{len(slow)} slow ones. `make test` runs them."
    )
    if hasattr(config, "workeroutput"):  # a worker of xdist, whose words only reach the terminal at its end
        config.workeroutput[LEFT_OUT] = line
    else:
        _left_out.append(line)


def unfreeze() -> None:
    """In the place of gc.unfreeze, which what is under test may call: the next test freezes everything again."""
    _frozen.clear()
    _unfreeze()


def pytest_runtest_setup() -> None:
    if not _frozen:
        _frozen.append(True)
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist has ended."""
    _left_out.extend(getattr(node, "workeroutput", {}).get(LEFT_OUT, "").splitlines())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _figures.extend(str(value) for name, value in report.user_properties if name == FIGURE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _figures and "PYTEST_XDIST_WORKER" not in os.environ:
        terminalreporter.section("figures")
        for figure in _figures:
            terminalreporter.write_line(figure)
    if _left_out:
        terminalreporter.write_line(_left_out[0])
