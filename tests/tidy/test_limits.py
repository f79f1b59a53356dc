"""Limits that the documents promise, or that Kubernetes and client-go set: the code has these very numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from wukong.api import placement, quantity
from wukong.app.components.admission import server as webhooks
from wukong.app.components.hook import server as hook
from wukong.app.sim_live import plan
from wukong.cluster import capture, credentials, http, list_watch
from wukong.controllers.policy import controller as policy
from wukong.replies.extender import plugin, verbs
from wukong.runtime import event_writer, leader, mirror_age, pending_writes
from wukong.serve import body_limits, site
from wukong.serve.extender import server
from wukong.serve.notices import server as notices

DOCS = Path(__file__).parents[2] / "docs"
MEBIBYTE = 1 << 20

PROMISED: list[tuple[object, object, str, str]] = [
    (site.CONNECTIONS, 256, "operations.md", "`extender` (at most 256), `admission` (512) and `probes` (64)"),
    (webhooks.CONNECTIONS, 512, "operations.md", "`extender` (at most 256), `admission` (512) and `probes` (64)"),
    (site.HANDSHAKE_SECONDS, 10.0, "operations.md", "| a TLS handshake | 10 s |"),
    (body_limits.LIMIT_BYTES, 128 * MEBIBYTE, "operations.md", "| 128 MiB (413), 192 MiB (503)"),
    (body_limits.TOTAL_BYTES, 192 * MEBIBYTE, "operations.md", "| 128 MiB (413), 192 MiB (503)"),
    (server.BODY_SECONDS, 30.0, "operations.md", "| a body to arrive, a large answer to be read | 30 s |"),
    (hook.CONNECTIONS, 64, "operations.md", "| 64; 16 KiB (413), 1 MiB (503); 10 s |"),
    (notices.LIMIT_BYTES, 16 << 10, "operations.md", "| 64; 16 KiB (413), 1 MiB (503); 10 s |"),
    (notices.TOTAL_BYTES, MEBIBYTE, "operations.md", "| 64; 16 KiB (413), 1 MiB (503); 10 s |"),
    (notices.BODY_SECONDS, 10.0, "operations.md", "| 64; 16 KiB (413), 1 MiB (503); 10 s |"),
    (http.STALL_SECONDS, 90.0, "operations.md", "A watch on which nothing came for 90 s is cut"),
    (list_watch.FIRST_SECONDS, 0.8, "operations.md", "begun again after 0.8 s, doubling up to 30 s"),
    (list_watch.LAST_SECONDS, 30.0, "operations.md", "begun again after 0.8 s, doubling up to 30 s"),
    (mirror_age.LIMIT_SECONDS, 150.0, "operations.md", "Beyond `--mirror-age-limit` (150 s)"),
    (pending_writes.PATIENCE, 5.0, "scenarios.md", "for the 5 s that the runtime is patient"),
    (placement.CONFIG_BYTES, 64 << 10, "policies.md", "16 levels and 64 KiB"),
    (placement.CONFIG_DEPTH, 16, "policies.md", "16 levels and 64 KiB"),
    (list_watch.PAGE, 500, "performance.md", "in pages of 500 as Wukong"),
]

OF_OTHERS: dict[str, tuple[object, object]] = {
    "a generated name keeps 63 - 5 characters": (plan.LONGEST_BASE, 58),
    "the API server takes a note of 1 kB": (verbs._LONGEST_NOTE, 1024),
    "the API server takes a message of 32 KiB in a condition": (policy.LONGEST_MESSAGE, 32_768),
    "leaseTransitions have 32 bits": (leader._MOST_TRANSITIONS, 2**31 - 1),
    "kube-scheduler counts to 100, an extender to 10": (plugin.PER_POINT, 10),
    "Kubernetes caps quantities": (quantity.MAX, (2**63 - 1) * 10**9),
    "client-go reads a token file again each minute": (credentials.REREAD_SECONDS, 60.0),
    "client-go takes what repeats within ten minutes together": (event_writer.SERIES_SECONDS, 600.0),
    "client-go lists pages of 500": (capture.PAGE, 500),
}


@pytest.mark.parametrize(("limit", "expected", "document", "promise"), PROMISED)
def test_a_limit_is_the_one_that_the_documents_promise(
    limit: object, expected: object, document: str, promise: str
) -> None:
    assert limit == expected
    assert promise in (DOCS / document).read_text("utf-8")


@pytest.mark.parametrize("reason", OF_OTHERS)
def test_a_limit_is_the_one_that_others_set(reason: str) -> None:
    limit, expected = OF_OTHERS[reason]
    assert limit == expected
