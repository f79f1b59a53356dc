"""TLS for servers, renewed without a restart; certificates on both sides where only known clients may call.

serve.site is given the context. Certificates in files (CertificateFiles) are rotated by writing the files anew: every
new connection looks whether they changed, and so does whoever asks when they expire. Files that cannot be used, half
written perhaps, are reported once and the last good ones stay. Certificates that somebody else keeps (HeldCertificate)
are handed over; they touch no disk.
"""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

from cryptography import x509

from wukong.errors import InputError

log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


SERVER, CLIENT_CA = "server", "client-ca"  # what `expiries` calls them


class CertificateFiles:
    """A server's `certificate` and its `key`, and the authorities (`client_ca`) of those who may call it; None: all."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None) -> None:
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
        server = _read_expiry_times(self.certificate)
        authorities = [] if self.client_ca is None else _read_expiry_times(self.client_ca)
        ends = {SERVER: min(server, default=None), CLIENT_CA: max(authorities, default=None)}
        return {name: end for name, end in ends.items() if end is not None}

    def _read_stamps(self) -> _Stamp:
        return tuple(_stamp_of(path) for path in (self.certificate, self.key, self.client_ca) if path is not None)

    def _load(self) -> ssl.SSLContext:
        context = _build_context()
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise InputError(
                f"{self.certificate}, {self.key}: expected a PEM certificate and its private key: "
                f"{_describe_error(error)}."
            ) from None
        if self.client_ca is None:
            return context
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cafile=self.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise InputError(
                f"{self.client_ca}: expected the PEM certificates of those who sign clients: {_describe_error(error)}."
            ) from None
        return context


class HeldCertificate:
    """A certificate that its owner hands over, and again when there is a newer one. Until the first, nobody gets in."""

    def __init__(self) -> None:
        self._current: ssl.SSLContext | None = None

    def use(self, certificate: bytes, key: bytes) -> None:
        """From the next connection on. Raises InputError for what is no PEM certificate with its key."""
        context = _build_context()
        # OpenSSL reads files only. This one has no name, and is gone when it is closed.
        file = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(file, certificate + key)
            context.load_cert_chain(f"/proc/self/fd/{file}", password=_refuse_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise InputError(f"expected a PEM certificate and its private key: {_describe_error(error)}.") from None
        finally:
            os.close(file)
        self._current = context

    def build_context(self) -> ssl.SSLContext:
        """The context a server keeps; each connection is switched to that of the current certificate."""
        outer = _build_context()
        outer.sni_callback = self._select_context
        return outer

    def _select_context(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


def _build_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # No resumption: a resumed session is not checked against an authority that was replaced meanwhile.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
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
