"""The revision that a StatefulSet or a DaemonSet asks for: a stored one with the same template, else a new one.

A cluster that was loaded from a snapshot has the names its own controllers gave; they are found by comparing templates,
as Kubernetes does. Called by stateful_set/ and daemon_set/, and for the label by snapshot/.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.documents import without_nulls
from wukong.api.kinds import CONTROLLER_REVISIONS
from wukong.api.meta import Object
from wukong.embedded.actors.deployment.revisions import hash_template
from wukong.embedded.world.objects import ControllerRevision, template_of
from wukong.ports import Document
from wukong.state import State

REVISION_LABEL = "controller-revision-hash"


def revision_of(pod: Pod) -> str:
    """The revision that a pod's label names; "" if it has none."""
    return pod.metadata.labels.get(REVISION_LABEL, "")


def find_revision_hash(owner: Object, state: State) -> str:
    """The hash of the revision that the owner's template asks for: the end of the revision's name."""
    template, prefix = template_of(owner), f"{owner.metadata.name}-"
    wanted = None
    keys = state.owners.owned_by(owner.metadata.uid, CONTROLLER_REVISIONS)
    for revision in (state.get(ControllerRevision, key) for key in keys):
        wanted = _strip_template(template) if wanted is None else wanted
        if revision is None or not revision.metadata.name.startswith(prefix):
            continue
        if _stored_template_of(revision) == wanted:
            return revision.metadata.name.removeprefix(prefix)
    return hash_template(template)


def _stored_template_of(revision: ControllerRevision) -> Document:
    return _strip_template((revision.data.get("spec") or {}).get("template") or {})


def _strip_template(template: Document) -> Document:
    """The template without patch directives and without nulls."""
    stripped: Document = without_nulls({name: value for name, value in template.items() if name != "$patch"})
    return stripped
