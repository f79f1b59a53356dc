"""TLS for servers that only known clients may call: certificates on both sides, renewed without a restart.

serve.site is given the context. Certificates are rotated by writing the files anew: every new connection looks whether
they changed, and so does whoever asks when they expire. Files that cannot be used, half written perhaps, are reported
once and the last good ones stay.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from cryptography import x509

from wukong.errors import InputError

log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


SERVER, CLIENT_CA = "server", "client-ca"  # what `expiries` calls them


class CertificateFiles:
    """A server's `certificate` and its `key`, and the authorities (`client_ca`) of those who may call it."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path) -> None:
        self.certificate, self.key, self.client_ca = certificate, key, client_ca
        self._stamp = self._read_stamps()
        self._current = self._load()
        self._expiries = self._read_expiries()
        self._problem = ""  # told already

    def build_context(self) -> ssl.SSLContext:
        """The context a server keeps; each connection is switched to the context of the current files."""
        outer = self._load()
        outer.sni_callback = self._select_context  # called on every hello, with or without a server name
        return outer

    def expiries(self) -> dict[str, float]:
        """When the certificates now in use expire, in seconds since 1970: the server's, and the last authority's."""
        self._refresh()
        return self._expiries

    def _select_context(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        self._refresh()
        connection.context = self._current

    def _refresh(self) -> None:
        """Use the files as they are now, if they changed and can be used."""
        try:
            stamp = self._read_stamps()
            if stamp != self._stamp:
                self._current = self._load()
                self._stamp, self._expiries = stamp, self._read_expiries()
                log.info("certificates reloaded", extra={"certificate": str(self.certificate)})
            self._problem = ""
        except InputError as error:
            if str(error) != self._problem:
                log.warning("certificates not reloaded: %s", error)
            self._problem = str(error)

    def _read_expiries(self) -> dict[str, float]:
        """A chain lasts as long as the first of it to expire; of authorities one suffices."""
        server, authorities = _read_expiry_times(self.certificate), _read_expiry_times(self.client_ca)
        ends = {SERVER: min(server, default=None), CLIENT_CA: max(authorities, default=None)}
        return {name: end for name, end in ends.items() if end is not None}

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
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (ssl.SSLError, OSError, ValueError) as error:
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


def _read_expiry_times(path: Path) -> list[float]:
    """OpenSSL has accepted the file: what this library does not read of it is nothing to stumble over."""
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
        return [certificate.not_valid_after_utc.timestamp() for certificate in certificates]
    except (OSError, ValueError):
        return []


def _refuse_password() -> str:
    """For a key that is encrypted: OpenSSL would ask at the terminal, and wait."""
    raise ValueError("the key is encrypted")


def _describe_error(error: OSError | ValueError) -> str:
    return ((error.strerror if isinstance(error, OSError) else "") or str(error)).lower()
