"""Words that other programs read or write: labels, annotations, names. Code and tests share a constant of each, so here
they are written out; another word is a change for everybody who uses it.
"""

from __future__ import annotations

import pytest

from wukong.api.core import NEVER_MOVE
from wukong.api.usage import USAGE_GROUP
from wukong.app.install.installation import NAMESPACE, SHARED_NAMESPACES
from wukong.app.sim_live.ownership import CREATOR, RUN_LABEL
from wukong.app.sim_live.player import NOT_READY
from wukong.app.sim_live.real_cluster import HOLLOW_LABEL, KWOK
from wukong.cluster.files import SNAPSHOT_COMMAND, STANDARD_INPUT
from wukong.cluster.kubeconfig import EXEC_VERSIONS
from wukong.cluster.layers import GENERATED
from wukong.cluster.redaction import HIDDEN
from wukong.cluster.snapshot_documents import MARK
from wukong.controllers.load.usage_labels import KINDS
from wukong.controllers.policy.controller import ACCEPTED, INVALID, UNREADABLE
from wukong.replies.extender.plugin import NAME
from wukong.replies.extender.verbs import CRITICAL
from wukong.runtime.gate import MIRROR_POD
from wukong.serve.extender.server import VERBS
from wukong.serve.tls import CLIENT_CA, SERVER

WORDS: list[tuple[object, object]] = [
    # Kubernetes' own, and KWOK's
    (MIRROR_POD, "kubernetes.io/config.mirror"),
    (NOT_READY, "node.kubernetes.io/not-ready"),
    (KWOK, "kwok.x-k8s.io/node"),
    (EXEC_VERSIONS, ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")),
    (SHARED_NAMESPACES, ("default", "kube-system", "kube-public", "kube-node-lease")),
    (VERBS, ("filter", "prioritize", "preempt")),
    # ours, on objects of a cluster
    (NEVER_MOVE, "novasphere.dev/never-move"),
    (USAGE_GROUP, "usage.novasphere.dev"),
    (KINDS, ("cpu", "memory", "storage")),
    (RUN_LABEL, "sim.novasphere.dev/run"),
    (HOLLOW_LABEL, "sim.novasphere.dev/hollow"),
    (CREATOR, "wukong"),
    (NAMESPACE, "wukong-system"),
    ((ACCEPTED, INVALID, UNREADABLE), ("Accepted", "Invalid", "Unreadable")),
    # in files, messages and metrics
    (MARK, "wukongSnapshot"),
    (
        SNAPSHOT_COMMAND,
        "kubectl get nodes,pods,ns,svc,rc,rs,sts,deploy,ds,pdb,pc,pvc,pv,sc,csinodes,csidrivers,csistoragecapacities,"
        "volumeattachments -A -o json",
    ),
    (STANDARD_INPUT, "-"),
    (GENERATED, "dry-run"),
    (HIDDEN, "***"),
    (NAME, "Extender"),
    (CRITICAL, "on-demand-first"),
    ((SERVER, CLIENT_CA), ("server", "client-ca")),
]


@pytest.mark.parametrize(("word", "expected"), WORDS)
def test_a_word_that_others_know_stays_as_it_is(word: object, expected: object) -> None:
    assert word == expected
