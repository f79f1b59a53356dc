"""The webhook for pods as an admission plugin of an embedded cluster: the same answers, without HTTP.

Built by the component, called by the store for every new object.
"""

from __future__ import annotations

import msgspec

from wukong.api.json_values import load_json
from wukong.api.kinds import PODS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Resource
from wukong.app.component import Context
from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.ports import Document
from wukong.replies.admission.pods import READ_FIELDS, AdmissionSettings, PodAdmission
from wukong.replies.admission.reply import PodRequest

_encode = msgspec.json.Encoder().encode


class EmbeddedAdmission:
    """A decision's nonce is the pod's uid: here it is known already, and the same seed gives the same one."""

    def __init__(self, context: Context, settings: AdmissionSettings) -> None:
        self._clock, self._uid = context.clock, ""
        self._pods = PodAdmission(context.state, lambda: self._uid, settings, rules=context.rules)

    def __call__(self, resource: Resource, document: Document) -> Document:
        if resource != PODS:
            return document
        meta = msgspec.convert(document["metadata"], ObjectMeta)
        read = {name: value for name, value in document["spec"].items() if name in READ_FIELDS}
        spec = {name: msgspec.Raw(_encode(value)) for name, value in read.items()}
        self._uid = meta.uid
        reply = self._pods.review(PodRequest(meta.namespace, meta, spec), self._clock.now())
        return apply_json_patch(document, load_json(reply.patch)) if reply.patch else document
