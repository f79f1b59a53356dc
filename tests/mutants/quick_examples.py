"""A pytest plugin for runs with a mutant: a failing example of hypothesis is not made smaller, which can take minutes.

Loaded by tree_copy.py, after the project's own profile.
"""

from __future__ import annotations

from hypothesis import Phase, settings


def pytest_configure() -> None:
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", parent=settings(), phases=phases, derandomize=True, database=None)
    settings.load_profile("mutants")
