"""Keys, certificates and kubeconfig files of one control plane. control_plane.py has them made.

Two authorities: one for the API server and its clients, one for the front proxy (aggregated APIs), as kubeadm has them.
Everything is made anew for each control plane and lies below its folder; nothing here is worth keeping.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
API_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
# name of the files: common name, organisation (Kubernetes: user and group)
CLIENTS = {
    "admin": ("wukong-testbed-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}
FRONT_PROXY_USER = "front-proxy-client"


class Authority:
    """A certificate authority and the folder its certificates go to."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self.certificate = (
            dated(self.name, self.name, self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )
        write(folder, name, self.key, self.certificate)

    @classmethod
    def read(cls, folder: Path, name: str) -> Authority:
        """The one that was made in this folder earlier."""
        authority = cls.__new__(cls)
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "we make no others"
        authority.folder, authority.key = folder, key
        authority.certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
        authority.name = authority.certificate.subject
        return authority

    def issue(
        self, file: str, user: str, group: str = "", addresses: Sequence[str] = (), names: Sequence[str] = ()
    ) -> None:
        """Write `file`.crt and `file`.key: a server's where it has addresses or names, else a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        others: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        others += [x509.DNSName(name) for name in names]
        usage = ExtendedKeyUsageOID.SERVER_AUTH if others else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = dated(x509.Name(attributes), self.name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        write(self.folder, file, key, builder.sign(self.key, hashes.SHA256()))


def make(folder: Path, server: str, service_address: str) -> None:
    """Every key, certificate and kubeconfig of a control plane whose API server answers at `server`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = Authority(folder, "ca")
    authority.issue("apiserver", "kube-apiserver", addresses=("127.0.0.1", service_address), names=API_SERVER_NAMES)
    Authority(folder, "front-proxy-ca").issue("front-proxy", FRONT_PROXY_USER)
    write(folder, "service-account", ec.generate_private_key(ec.SECP256R1()))
    for name, (user, group) in CLIENTS.items():
        make_client(authority, name, user, group, server)


def make_client(authority: Authority, name: str, user: str, group: str, server: str) -> None:
    """A client's key, certificate and kubeconfig."""
    authority.issue(name, user, group)
    kubeconfig = yaml.safe_dump(kubeconfig_of(authority.folder, name, server), sort_keys=False)
    write_private(authority.folder / f"{name}.kubeconfig", kubeconfig.encode())


def kubeconfig_of(folder: Path, client: str, server: str) -> dict[str, object]:
    """All data inline, so that the file can be copied elsewhere."""

    def inline(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    user = {"client-certificate-data": inline(f"{client}.crt"), "client-key-data": inline(f"{client}.key")}
    name = "wukong-testbed"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": inline("ca.crt")}}],
        "users": [{"name": client, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": client}}],
        "current-context": name,
    }


def dated(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    start = datetime.now(UTC) - timedelta(hours=1)  # clocks of the same machine agree, those of a container may not
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(start).not_valid_after(start + LIFETIME)


def write(
    folder: Path, file: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate | None = None
) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    write_private(folder / f"{file}.key", private)
    public_format = serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / f"{file}.pub").write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, public_format))
    if certificate is not None:
        (folder / f"{file}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, content: bytes) -> None:
    """Whoever waits for the file finds it whole."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.touch(mode=0o600)
    unfinished.write_bytes(content)
    unfinished.replace(path)
