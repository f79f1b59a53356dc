"""Tables of objects and of the places where a server finds something wrong with them, for the tests of this folder.

A place is the path and the reason, as in `spec.hostname: Invalid value`: what the comparison with a real server looks
at, too. The wording that follows is ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from wukong.embedded.store.validation.pods.spec import find_pod_spec_problems
from wukong.ports import Document

_REASON = re.compile(r"(.*?: (?:Invalid|Required|Unsupported|Duplicate) value|.*?: Forbidden|.*?: Not found)\b")
CONTAINER: Document = {"name": "main", "image": "app:1"}


def places(problems: Iterable[str]) -> list[str]:
    matches = [(problem, _REASON.match(problem)) for problem in problems]
    return [match[1] if match else problem for problem, match in matches]


def of_pod(**fields: Any) -> list[str]:
    """What is wrong with a pod of one plain container and these fields, below `spec`."""
    spec = {"containers": [CONTAINER], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, **fields}
    return [place.removeprefix("spec.") for place in places(find_pod_spec_problems(spec, "spec"))]


def of_container(volumes: list[Document] | None = None, /, **fields: Any) -> list[str]:
    """What is wrong with a container, below it; what is elsewhere keeps its path."""
    found = of_pod(containers=[{**CONTAINER, **fields}], volumes=volumes or [])
    return [place.removeprefix("containers[0].") for place in found]
