"""TLS for servers that only known clients may call: certificates on both sides, renewed without a restart.

serve.site is given the context. Certificates are rotated by writing the files anew: every new connection looks whether
they changed. Files that cannot be used, half written perhaps, are reported and the last good ones stay.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from wukong.errors import InputError

log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


def build_ssl_context(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """Answers with `certificate` and asks for one that `client_ca` signed."""
    return _CertificateFiles(certificate, key, client_ca).build_context()


class _CertificateFiles:
    def __init__(self, certificate: Path, key: Path, client_ca: Path) -> None:
        self.certificate, self.key, self.client_ca = certificate, key, client_ca
        self._stamp = self._read_stamps()
        self._current = self._load()

    def build_context(self) -> ssl.SSLContext:
        """The context a server keeps; each connection is switched to the context of the current files."""
        outer = self._load()
        outer.sni_callback = self._select_context  # called on every hello, with or without a server name
        return outer

    def _select_context(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        try:
            stamp = self._read_stamps()
            if stamp != self._stamp:
                self._current = self._load()
                self._stamp = stamp
                log.info("certificates reloaded", extra={"certificate": str(self.certificate)})
        except InputError as error:
            log.warning("certificates not reloaded: %s", error)
        connection.context = self._current

    def _read_stamps(self) -> _Stamp:
        return tuple(_stamp_of(path) for path in (self.certificate, self.key, self.client_ca))

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        # No resumption: a resumed session is not checked against an authority that was replaced meanwhile.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise InputError(
                f"{self.certificate}, {self.key}: expected a PEM certificate and its private key: "
                f"{_describe_error(error)}."
            ) from None
        try:
            context.load_verify_locations(cafile=self.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise InputError(
                f"{self.client_ca}: expected the PEM certificates of those who sign clients: {_describe_error(error)}."
            ) from None
        return context


def _stamp_of(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_describe_error(error)}.") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _describe_error(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
