"""The options that verbs share, as what the course takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wukong.cli.changes.course import CourseOptions
from wukong.cli.inputs.seeds import choose_seeds
from wukong.cli.inputs.workload_change import read_timeout
from wukong.errors import InputError


def read_course_options(given: Mapping[str, Any]) -> CourseOptions:
    """What `add_course_options` gives. Raises InputError."""
    if given["auto_undo"] and not given["follows"]:
        raise InputError("--auto-undo goes by how the rollout ends, and --no-follow does not wait. Leave one out.")
    return CourseOptions(
        is_agreed=given["yes"],
        is_forced=given["force"],
        advice=given["take_advice"],
        seeds=choose_seeds(given["seeds"]),
        follows=given["follows"],
        undoes=given["auto_undo"],
        timeout_seconds=read_timeout(given["timeout"]),
        output=given["output"],
    )
