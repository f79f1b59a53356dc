"""Fields of workloads that the API server writes itself: a Job's selector, a DaemonSet's count of its templates.

Called by writes.py on every create and update of these kinds. Pure: returns documents, changes none.
"""

from __future__ import annotations

from wukong.embedded.store.documents import meta_of, with_metadata
from wukong.ports import Document

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
JOB_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")


def add_job_selector(job: Document) -> Document:
    """Return a new Job that selects its pods by its uid, unless it says that it has a selector of its own."""
    spec, meta = job["spec"], meta_of(job)
    if spec.get("manualSelector"):
        return job
    template = spec["template"]
    has_own_labels = meta.get("labels") is not template["metadata"].get("labels")
    labels = {**dict.fromkeys(JOB_NAMES, meta["name"]), **dict.fromkeys(JOB_UIDS, meta["uid"])}
    labels |= template["metadata"].get("labels") or {}
    selector = spec.get("selector") or {}
    selected = {JOB_UIDS[0]: meta["uid"], **(selector.get("matchLabels") or {})}
    return {
        **job,
        # Those it took from its template are in Go the very same map.
        "metadata": meta if has_own_labels else {**meta, "labels": labels},
        "spec": {
            **spec,
            "selector": {**selector, "matchLabels": selected},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def count_template(before: Document | None, after: Document) -> Document:
    """Return a DaemonSet with the number of templates that it has had, as an annotation."""
    old = (meta_of(before).get("annotations") or {}).get(TEMPLATE_GENERATION) if before else None
    number = int(old) if old and old.isascii() and old.isdigit() else 0 if before is None else 1
    if before is None or before["spec"].get("template") != after["spec"].get("template"):
        number += 1
    annotations = meta_of(after).get("annotations") or {}
    if annotations.get(TEMPLATE_GENERATION) == str(number):
        return after
    return with_metadata(after, annotations={**annotations, TEMPLATE_GENERATION: str(number)})
