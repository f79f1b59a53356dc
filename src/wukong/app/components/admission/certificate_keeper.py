"""Keeps the webhooks' own certificates: in a Secret that all instances read, and API servers told whom to believe.

Run beside the server. Who leads makes and renews (rotation.py says when) and writes the authorities into the webhook
configurations; the others serve what they find. Whatever fails is tried again; what is served stays meanwhile.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from wukong.api.kinds import SECRETS
from wukong.api.resources import Key, Resource
from wukong.app.components.admission.options import (
    AdmissionOptions,
    configuration_of,
    hosts_of,
    secret_of,
    service_of,
)
from wukong.app.components.admission.rotation import (
    Keys,
    RotationTimes,
    decide_step,
    decode_keys,
    encode_keys,
    expiry_of,
    now_of,
    take_step,
)
from wukong.errors import ClusterError, InputError, NotFound
from wukong.ports import Clock, Cluster, Document, PatchBody
from wukong.serve.tls import HeldCertificate

GROUP = "admissionregistration.k8s.io"
MUTATING = Resource("MutatingWebhookConfiguration", "v1", GROUP, "mutatingwebhookconfigurations", namespaced=False)
VALIDATING = Resource(
    "ValidatingWebhookConfiguration", "v1", GROUP, "validatingwebhookconfigurations", namespaced=False
)
LOOK_SECONDS = 10.0
FIRST_LOOK_SECONDS = 0.5  # until there is a certificate
log = logging.getLogger(__name__)


class CertificateKeeper:
    def __init__(
        self,
        cluster: Cluster,
        options: AdmissionOptions,
        held: HeldCertificate,
        clock: Clock,
        is_leading: Callable[[], bool],
    ) -> None:
        """`held` is handed every new certificate."""
        service = service_of(options)
        self._cluster, self._held, self._clock, self._is_leading = cluster, held, clock, is_leading
        self._secret, self._configuration = secret_of(service), Key("", configuration_of(service))
        self._hosts: Sequence[str] = hosts_of(service)
        self._times = RotationTimes(timedelta(days=options.certificate_days), options.spread_seconds)
        self._keys: Keys | None = None  # those that are served
        self._problem = ""

    def expires_at(self) -> float:
        """When the certificate that is served expires, in seconds since 1970; 0 while there is none."""
        return 0.0 if self._keys is None else expiry_of(self._keys)

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self.look()
                self._problem = ""
            except (ClusterError, InputError) as error:
                if str(error) != self._problem:
                    log.warning("the webhooks' certificates: %s", error)
                self._problem = str(error)
            await self._rest()

    async def _rest(self) -> None:
        """Until the next look is due. Who begins to lead looks at once."""
        was_leading, ends_at = self._is_leading(), asyncio.get_running_loop().time() + self._pause_seconds()
        while asyncio.get_running_loop().time() < ends_at and self._is_leading() == was_leading:
            await asyncio.sleep(FIRST_LOOK_SECONDS)

    def _pause_seconds(self) -> float:
        if self._keys is None:
            return FIRST_LOOK_SECONDS
        is_changing = self._keys.next is not None  # another authority is to be told, or to sign
        return max(FIRST_LOOK_SECONDS, min(LOOK_SECONDS, self._times.spread_seconds)) if is_changing else LOOK_SECONDS

    async def look(self) -> None:
        """Serve what the Secret holds; who leads brings it and the configurations up to date first."""
        document = await self._read_secret()
        keys = None if document is None else decode_keys(document.get("data") or {})
        if self._is_leading():
            keys = await self._bring_up_to_date(document, keys)
        if keys is not None and keys != self._keys:
            self._held.use(keys.server.certificate, keys.server.key)
            self._keys = keys
            log.info("the webhooks serve a new certificate")

    async def _bring_up_to_date(self, document: Document | None, keys: Keys | None) -> Keys:
        bundles = [] if keys is None else await self._tell_authorities(keys)
        now = now_of(self._clock.now())
        is_next_known = keys is not None and all(bundle == keys.bundle for bundle in bundles)
        step = decide_step(keys, self._hosts, is_next_known, now, self._times)
        if step == "keep":
            assert keys is not None, "else some would be made"
            return keys
        log.info("the webhooks' certificates: %s", step)
        keys = take_step(step, keys, self._hosts, now, self._times)
        await self._write_secret(document, keys)
        await self._tell_authorities(keys)
        return keys

    async def _read_secret(self) -> Document | None:
        try:
            document: Document = await self._cluster.get(SECRETS, self._secret, dict)
        except NotFound:
            return None
        return document

    async def _write_secret(self, document: Document | None, keys: Keys) -> None:
        """Only if nobody wrote since we read."""
        data = encode_keys(keys)
        if document is None:
            present = {name: content for name, content in data.items() if content is not None}
            body = {"metadata": {"name": self._secret.name}, "type": "Opaque", "data": present}
            await self._cluster.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **body}, self._secret.namespace)
            return
        version = document["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "data": data}
        await self._cluster.patch(SECRETS, self._secret, PatchBody("merge", body))

    async def _tell_authorities(self, keys: Keys) -> list[bytes]:
        """Write them into the configurations where they are missing. Returns what stood in each webhook before."""
        bundle, before = base64.b64encode(keys.bundle).decode(), list[bytes]()
        for resource in (MUTATING, VALIDATING):
            try:
                document = await self._cluster.get(resource, self._configuration, dict)
            except NotFound:
                continue  # not installed, or installed no more: nobody calls
            webhooks = document.get("webhooks") or []
            texts = {webhook["name"]: webhook.get("clientConfig", {}).get("caBundle", "") for webhook in webhooks}
            before += [base64.b64decode(text) for text in texts.values()]
            changes = [
                {"name": name, "clientConfig": {"caBundle": bundle}} for name, text in texts.items() if text != bundle
            ]
            if changes:
                await self._cluster.patch(resource, self._configuration, PatchBody("strategic", {"webhooks": changes}))
        return before
