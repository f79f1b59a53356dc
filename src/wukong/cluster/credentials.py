"""Where a cluster is and how we prove who we are: TLS, tokens, certificates, plugins. Used by http.py.

`load` finds them as kubectl does: the file named, else $KUBECONFIG, else ~/.kube/config, else a service account's.
TLS is verified unless the kubeconfig itself says insecure-skip-tls-verify.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from wukong.cluster import exec_plugin, kubeconfig
from wukong.cluster.exec_plugin import Granted
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.cluster.proxy import checked, proxy_for
from wukong.errors import InputError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0  # the kubelet renews a token when a fifth of its life, at least minutes, is left

Headers = tuple[tuple[str, str], ...]


class Credentials:
    """One login, kept fresh. `tls` is None for plain http.

    `generation` counts the client certificates shown so far: connections made with an older one are not to be reused.
    """

    def __init__(
        self, login: Login, env: Mapping[str, str] = os.environ, *, now: Callable[[], float] = time.time
    ) -> None:
        self.server, self.namespace = login.cluster.server.rstrip("/"), login.namespace
        self.proxy = checked(login.cluster.proxy_url, f"{login.place}: proxy-url") or proxy_for(self.server, env)
        self.tls_server_name = login.cluster.tls_server_name
        self.tls = _trust(login) if urlsplit(self.server).scheme == "https" else None
        self.generation = 0
        self._login, self._user, self._now = login, login.user, now
        self._granted: Granted | None = None
        self._token, self._token_read_at = login.user.token, float("-inf")
        self._lock = asyncio.Lock()  # fifty requests at once run a plugin once
        self._shown = b""
        self._show_certificate()

    async def headers(self) -> Headers:
        """Who we are. Runs the plugin when what it gave has expired; reads a token file again every minute."""
        async with self._lock:
            await self._freshen()
            return self._headers()

    async def renew(self, refused: Headers) -> bool:
        """The server did not know these (401). Look again; gives whether there is anything new to show."""
        async with self._lock:
            generation = self.generation
            if self._headers() == refused:
                self._granted, self._token_read_at = None, float("-inf")
                await self._freshen()
                self._show_certificate()
            return self._headers() != refused or self.generation != generation

    async def _freshen(self) -> None:
        plugin, now = self._user.exec, self._now()
        if self._user.token_file and now - self._token_read_at >= REREAD_SECONDS:
            self._read_token(now)
        if plugin and not self._token and (self._granted is None or self._granted.is_expired(now)):
            self._granted = await exec_plugin.run(plugin, self._login.cluster, self._login.place)
            self._show_certificate()

    def _headers(self) -> Headers:
        user, token = self._user, self._token or (self._granted.token if self._granted else "")
        basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode() if user.username else ""
        said = [("Authorization", f"Bearer {token}" if token else f"Basic {basic}" if basic else "")]
        said += [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid)]
        said += [("Impersonate-Group", group) for group in user.as_groups]
        return tuple((name, value) for name, value in said if value)

    def _read_token(self, now: float) -> None:
        try:
            self._token = Path(self._user.token_file).read_text("utf-8").strip() or self._token
            self._token_read_at = now
        except OSError as error:
            if not self._token:  # otherwise the last one may still do
                raise _unreadable(self._login.place, "tokenFile", self._user.token_file, error) from None

    def _show_certificate(self) -> None:
        """Load the client's certificate for connections to come, if it is another than before."""
        pair = self._certificate()
        if self.tls is None or not pair or pair == self._shown:
            return
        with tempfile.NamedTemporaryFile() as file:  # Python reads it only from a file; ours alone, mode 0600
            file.write(pair)
            file.flush()
            try:
                self.tls.load_cert_chain(file.name)
            except ssl.SSLError as error:
                problem = f"the client certificate and its key do not work: {error.reason or error}."
                raise InputError(f"{self._login.place}: {problem} Are they PEM, and of one pair?") from None
        self.generation += bool(self._shown)
        self._shown = pair

    def _certificate(self) -> bytes:
        user, place = self._user, self._login.place
        if self._granted and self._granted.client_certificate_data:
            return f"{self._granted.client_certificate_data}\n{self._granted.client_key_data}".encode()
        certificate = _content(place, "client-certificate", user.client_certificate, user.client_certificate_data)
        return certificate and certificate + b"\n" + _content(
            place, "client-key", user.client_key, user.client_key_data
        )


def load(file: str = "", context: str = "", env: Mapping[str, str] = os.environ) -> Credentials:
    """`file` and `context` are --kubeconfig and --context; "" where not given."""
    found = read_kubeconfig(file, env)
    if found is not None:
        return Credentials(kubeconfig.resolve(found, context), env)
    if not context and env.get("KUBERNETES_SERVICE_HOST"):
        return Credentials(in_cluster(env), env)
    looked = env.get("KUBECONFIG") or "~/.kube/config"
    raise InputError(f"{looked}: there is no kubeconfig, and this is no pod. Name one with --kubeconfig.")


def read_kubeconfig(file: str, env: Mapping[str, str]) -> kubeconfig.Kubeconfig | None:
    """The file, or the merged list of $KUBECONFIG, whose files need not all exist. None: there is none at all."""
    home = Path(env.get("HOME") or "~").expanduser()
    listed = [name for name in env.get("KUBECONFIG", "").split(os.pathsep) if name] or [str(home / ".kube" / "config")]
    parts = []
    for name in [file] if file else listed:
        try:
            parts.append(kubeconfig.parse(Path(name).read_bytes(), name))
        except FileNotFoundError:
            if file:
                raise InputError(f"{file}: there is no such file. Check --kubeconfig.") from None
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from None
    return kubeconfig.merge(parts) if parts else None


def in_cluster(env: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Login:
    """The login of a pod's service account."""
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if not (folder / "token").exists():
        fix = "Does the pod set automountServiceAccountToken: false?"
        raise InputError(f"{folder / 'token'}: expected the service account's token, found none. {fix}")
    namespace = folder / "namespace"
    return Login(
        place="in-cluster",
        cluster=ClusterEntry(server=server, certificate_authority=str(folder / "ca.crt")),
        user=UserEntry(token_file=str(folder / "token")),
        namespace=namespace.read_text("utf-8").strip() if namespace.exists() else "default",
    )


def _trust(login: Login) -> ssl.SSLContext:
    cluster = login.cluster
    authority = _content(
        login.place, "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    try:
        tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise InputError(f"{login.place}: certificate-authority: expected certificates in PEM.") from None
    # Python 3.13 asks for extensions that the authorities of many clusters lack, and that Go does not ask for.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.insecure_skip_tls_verify:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


def _content(place: str, field: str, file: str, data: str) -> bytes:
    """Of a field that comes as a file or as `-data`, which wins."""
    if data:
        return kubeconfig.decoded(data, f"{place}: {field}-data")
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise _unreadable(place, field, file, error) from None


def _unreadable(place: str, field: str, file: str, error: OSError) -> InputError:
    return InputError(f"{place}: {field}: cannot read {file}: {error.strerror or error}.")
