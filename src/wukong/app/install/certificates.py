"""Certificates for mutual TLS: an authority of its own, one certificate for the server, one for its only client.

Called by the commands that print what to install. The authority's key never leaves this function: nobody can make
another client, and renewing means making all three anew. Nothing is written here; time is an argument, randomness is
the keys'.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from wukong.app.install.installation import is_ip

SLACK = timedelta(hours=1)  # clocks differ


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Certificates(msgspec.Struct, frozen=True):
    authority: bytes  # PEM: signs both others
    server: Pair
    client: Pair
    expire: datetime


def issue(name: str, hosts: Sequence[str], now: datetime, days: int) -> Certificates:
    """Certificates for the server `name` at these names and addresses, and for the one client it believes."""
    issuer = _Issuer(name, now - SLACK, now + timedelta(days=days))
    others = [x509.IPAddress(ipaddress.ip_address(host)) if is_ip(host) else x509.DNSName(host) for host in hosts]
    return Certificates(
        authority=_pem(issuer.certificate),
        server=issuer.pair(name, ExtendedKeyUsageOID.SERVER_AUTH, others),
        client=issuer.pair(f"{name}-client", ExtendedKeyUsageOID.CLIENT_AUTH, []),
        expire=issuer.certificate.not_valid_after_utc,
    )


class _Issuer:
    def __init__(self, name: str, start: datetime, end: datetime) -> None:
        self.start, self.end = start, end
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(f"{name}-ca")
        builder = self._builder(self.name, self.key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.certificate = builder.add_extension(_usage(is_authority=True), critical=True).sign(
            self.key, hashes.SHA256()
        )

    def pair(self, name: str, purpose: x509.ObjectIdentifier, hosts: list[x509.DNSName | x509.IPAddress]) -> Pair:
        """Good for one purpose only: the server's certificate cannot pass for the client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pair(_pem(builder.sign(self.key, hashes.SHA256())), private)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(serial_number=x509.random_serial_number())
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .not_valid_before(self.start)
            .not_valid_after(self.end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
