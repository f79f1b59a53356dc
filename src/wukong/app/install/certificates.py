"""Certificates: for mutual TLS an authority, a server and its only client at once; or an authority that is kept.

`issue` is called by the commands that print what to install. The authority's key never leaves it: nobody can make
another client, and renewing means making all three anew. `issue_authority` and `issue_server` are for a server that
renews its own. Nothing is written here; time is an argument, randomness is the keys'.
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
    issuer = _Issuer.create(name, now - SLACK, now + timedelta(days=days))
    return Certificates(
        authority=_pem(issuer.certificate),
        server=issuer.pair(name, ExtendedKeyUsageOID.SERVER_AUTH, _list_names(hosts)),
        client=issuer.pair(f"{name}-client", ExtendedKeyUsageOID.CLIENT_AUTH, []),
        expire=issuer.certificate.not_valid_after_utc,
    )


def issue_authority(name: str, now: datetime, lifetime: timedelta) -> Pair:
    """An authority that signs servers, with its key."""
    issuer = _Issuer.create(name, now - SLACK, now + lifetime)
    return Pair(_pem(issuer.certificate), _key_pem(issuer.key))


def issue_server(authority: Pair, name: str, hosts: Sequence[str], now: datetime, lifetime: timedelta) -> Pair:
    """A certificate for the server `name` at these names and addresses. It never outlives its authority."""
    certificate = x509.load_pem_x509_certificate(authority.certificate)
    key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "we made it"
    issuer = _Issuer(key, certificate, now - SLACK, min(now + lifetime, certificate.not_valid_after_utc))
    return issuer.pair(name, ExtendedKeyUsageOID.SERVER_AUTH, _list_names(hosts))


class _Issuer:
    """Signs certificates that are good from `start` to `end`."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, start: datetime, end: datetime
    ) -> None:
        self.key, self.certificate, self.start, self.end = key, certificate, start, end

    @classmethod
    def create(cls, name: str, start: datetime, end: datetime) -> _Issuer:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"{name}-ca")
        builder = _build_certificate(subject, subject, key.public_key(), key.public_key(), start, end)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(is_authority=True), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()), start, end)

    def pair(self, name: str, purpose: x509.ObjectIdentifier, hosts: list[x509.DNSName | x509.IPAddress]) -> Pair:
        """Good for one purpose only: the server's certificate cannot pass for the client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _build_certificate(
            _name(name), self.certificate.subject, key.public_key(), self.key.public_key(), self.start, self.end
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return Pair(_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key))


def _build_certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(serial_number=x509.random_serial_number())
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _list_names(hosts: Sequence[str]) -> list[x509.DNSName | x509.IPAddress]:
    return [x509.IPAddress(ipaddress.ip_address(host)) if is_ip(host) else x509.DNSName(host) for host in hosts]


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


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
