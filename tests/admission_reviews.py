"""Builders of AdmissionReviews: `a_review(a_new_pod())`, as an API server sends them; and what is answered."""

from __future__ import annotations

import base64
import json
from typing import Any

from wukong.ports import Document

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def a_new_pod(name: str = "", *, owner: str = "rs-1", namespace: str = "shop", **spec: Any) -> Document:
    """A pod as it is when webhooks are called: defaulted, with a priority and a token, often without a name."""
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    named = {"name": name} if name else {"generateName": "web-5d9f-"}
    mount = {"name": "kube-api-access-x7k2p", "readOnly": True, "mountPath": "/var/run/secrets"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            **named,
            "namespace": namespace,
            "creationTimestamp": None,
            "labels": {"app": "web", "pod-template-hash": "5d9f"},
            **({"ownerReferences": owners} if owner else {}),
        },
        "spec": {
            "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"sources": [], "defaultMode": 420}}],
            "containers": [{"name": "main", "image": "web:1", "resources": {}, "volumeMounts": [mount]}],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{reason}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for reason in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            **spec,
        },
        "status": {},
    }


def a_review(document: Document | None, **request: Any) -> Document:
    """`a_review(pod, dryRun=True)`: of the kind and namespace that the document has."""
    document = document or {}
    group, _, version = document.get("apiVersion", "v1").rpartition("/")
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": UID,
            "kind": {"group": group, "version": version, "kind": document.get("kind", "")},
            "resource": {"group": group, "version": version, "resource": document.get("kind", "").lower() + "s"},
            "namespace": document.get("metadata", {}).get("namespace", ""),
            "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["x"]},
            "object": document or None,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **request,
        },
    }


def encode(review: Document) -> bytes:
    return json.dumps(review, separators=(",", ":")).encode()


def read_answer(body: bytes, uid: str = UID) -> Document:
    """The response, checked as an API server checks it."""
    review = json.loads(body)
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    response: Document = review["response"]
    assert response["uid"] == uid
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    assert response.get("patchType", "JSONPatch") == "JSONPatch"
    return response


def patch_of(response: Document) -> list[Document]:
    operations: list[Document] = json.loads(base64.b64decode(response.get("patch", ""), validate=True) or "[]")
    return operations
