"""Settings for all tests: hypothesis without deadlines, figures at the end of a run, the fixtures of the test bed."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["testbed.pytest_plugin"]

settings.register_profile(
    "wukong", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("wukong")
FIGURE = "figure"  # record_property(FIGURE, text) shows the text in the summary of the run, also under xdist
_figures: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _figures.extend(str(value) for name, value in report.user_properties if name == FIGURE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _figures and "PYTEST_XDIST_WORKER" not in os.environ:
        terminalreporter.section("figures")
        for figure in _figures:
            terminalreporter.write_line(figure)
