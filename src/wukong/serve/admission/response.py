"""Answers to an API server, as bytes: an AdmissionReview with a response. server.py calls it."""

from __future__ import annotations

from base64 import b64encode

import msgspec

from wukong.replies.admission.reply import Reply

_encode = msgspec.json.Encoder().encode
_START = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":'
_DENIED = 422  # what the API server itself answers for an object that it does not accept


def encode_response(uid: str, reply: Reply) -> bytes:
    parts = [_START, _encode(uid), b',"allowed":true' if reply.is_allowed else b',"allowed":false']
    if reply.patch:
        parts += [b',"patchType":"JSONPatch","patch":"', b64encode(reply.patch), b'"']
    if reply.warnings:
        parts += [b',"warnings":', _encode(reply.warnings)]
    if not reply.is_allowed:
        status = {"status": "Failure", "message": reply.message, "reason": "Invalid", "code": _DENIED}
        parts += [b',"status":', _encode(status)]
    return b"".join([*parts, b"}}"])
