"""The credentials for one cluster: its address, TLS, tokens, client certificates, exec plugins. Used by http.py.

`load` finds them as kubectl does: --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else a service account's.
TLS is verified unless the kubeconfig itself says insecure-skip-tls-verify.

What cannot be used at the beginning is an InputError. Later it may be a file caught half-written, or a plugin about to
be replaced: the credentials of before stay, and it is tried again with the next request that needs it.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from wukong.cluster import exec_plugin, kubeconfig
from wukong.cluster.exec_plugin import ExecCredentialStatus
from wukong.cluster.files import read_settings
from wukong.cluster.kubeconfig import ClusterEntry, Exec, Login, UserEntry, is_header_value
from wukong.cluster.proxy import check_proxy, find_proxy
from wukong.cluster.urls import find_url_problem
from wukong.errors import Denied, InputError

log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0  # the kubelet renews a token when a fifth of its life, at least minutes, is left

Headers = tuple[tuple[str, str], ...]


class Credentials:
    """One login, kept fresh. `tls` is None for plain http.

    `generation` counts the client certificates used so far: connections made with an older one must not be reused.
    """

    def __init__(
        self, login: Login, env: Mapping[str, str] = os.environ, *, now: Callable[[], float] = time.time
    ) -> None:
        self.server, self.namespace = login.cluster.server.rstrip("/"), login.namespace
        self.proxy = check_proxy(login.cluster.proxy_url, f"{login.place}: proxy-url") or find_proxy(self.server, env)
        self.tls_server_name = login.cluster.tls_server_name
        is_secure = urlsplit(self.server).scheme == "https"
        self._loaded_authority = _read_authority(login) if is_secure else b""
        self.tls = _build_tls_context(login, self._loaded_authority) if is_secure else None
        self.generation = 0
        self._login, self._user, self._now = login, login.user, now
        self._exec_status: ExecCredentialStatus | None = None
        self._token, self._token_read_at = login.user.token, float("-inf")
        self._plugin_run: asyncio.Task[None] | None = None  # fifty requests at once run a plugin once
        self._loaded_certificate = b""
        self._load_certificate()

    async def headers(self) -> Headers:
        """Return the headers that say who we are. Runs the plugin again when its credential has expired, and reads a
        token file again every minute."""
        await self._refresh()
        return self._build_headers()

    async def renew(self, rejected_headers: Headers) -> bool:
        """Look for newer credentials after the server rejected these headers (401). Return whether there are any."""
        generation = self.generation
        if self._build_headers() == rejected_headers:
            self._token_read_at = float("-inf")
            await self._refresh(is_rejected=True)
            self._load_certificate()
        return self._build_headers() != rejected_headers or self.generation != generation

    async def _refresh(self, *, is_rejected: bool = False) -> None:
        now, status = self._now(), self._exec_status
        if self._user.token_file and now - self._token_read_at >= REREAD_SECONDS:
            self._read_token(now)
        if self._user.exec and not self._token and (is_rejected or status is None or status.is_expired(now)):
            await self._join_plugin_run(self._user.exec)

    async def _join_plugin_run(self, plugin: Exec) -> None:
        """Wait for the plugin that runs, or run it. Whoever gives up waiting does not stop it: others wait, too."""
        if self._plugin_run is None:
            self._plugin_run = asyncio.create_task(self._run_plugin(plugin))
            self._plugin_run.add_done_callback(self._end_plugin_run)
        await asyncio.shield(self._plugin_run)

    async def _run_plugin(self, plugin: Exec) -> None:
        try:
            status = await exec_plugin.run(plugin, self._login.cluster, self._login.place)
        except InputError as error:
            if self._exec_status is None:
                raise
            raise Denied(str(error)) from None  # it could be run before
        before, self._exec_status = self._exec_status, status
        try:
            self._load_certificate()
        except InputError:
            self._exec_status = before
            raise

    def _end_plugin_run(self, run: asyncio.Task[None]) -> None:
        self._plugin_run = None
        if not run.cancelled():
            run.exception()  # seen, even if everybody who waited has given up

    def _build_headers(self) -> Headers:
        user, token = self._user, self._token or (self._exec_status.token if self._exec_status else "")
        basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode() if user.username else ""
        headers = [("Authorization", f"Bearer {token}" if token else f"Basic {basic}" if basic else "")]
        headers += [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid)]
        headers += [("Impersonate-Group", group) for group in user.as_groups]
        return tuple((name, value) for name, value in headers if value)

    def _read_token(self, now: float) -> None:
        try:
            token = Path(self._user.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            if not self._token:  # otherwise the last one may still do
                raise _build_read_error(self._login.place, "tokenFile", self._user.token_file, error) from None
            return
        if not is_header_value(token):
            if not self._token:
                file = f"{self._login.place}: tokenFile: {self._user.token_file}"
                raise InputError(f"{file}: expected one line of text, got control characters in it.")
            return
        self._token, self._token_read_at = token or self._token, now

    def _load_certificate(self) -> None:
        """Load the client's certificate for new connections, if it has changed and can be used."""
        if self.tls is None:
            return
        try:
            pair = self._read_certificate()
            if not pair or pair == self._loaded_certificate:
                return
            with tempfile.NamedTemporaryFile() as file:  # Python reads it only from a file; ours alone, mode 0600
                file.write(pair)
                file.flush()
                # A pair that does not fit would leave a context with half of it: the one in use gets only a good one.
                for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self.tls):
                    context.load_cert_chain(file.name, password=_refuse_password)
        except InputError as error:
            self._refuse_certificate(error)
        except (ssl.SSLError, ValueError, OSError) as error:
            problem = f"the client certificate and its key do not work: {getattr(error, 'reason', None) or error}."
            self._refuse_certificate(InputError(f"{self._login.place}: {problem} Are they PEM, and of one pair?"))
        else:
            self.generation += bool(self._loaded_certificate)
            self._loaded_certificate = pair

    def reload_authority(self) -> None:
        """Read certificate-authority again after a server could not be trusted: clusters replace theirs, too.

        New connections trust what is in the file now, and nothing else. What cannot be used is left alone.
        """
        if self.tls is None:
            return
        before = self.tls, self._loaded_certificate
        try:
            authority = _read_authority(self._login)
            if authority == self._loaded_authority:
                return
            self.tls, self._loaded_certificate = _build_tls_context(self._login, authority), b""
            self._load_certificate()
        except InputError as error:
            self.tls, self._loaded_certificate = before
            log.warning("the certificate authority of before is kept: %s", error)
            return
        self._loaded_authority = authority
        self.generation += 1
        log.info("certificate authority reloaded", extra={"server": self.server})

    def _refuse_certificate(self, error: InputError) -> None:
        """Raise the error, unless there is a certificate of before: the new one may be half-written."""
        if not self._loaded_certificate:
            raise error
        log.warning("the client certificate of before is kept: %s", error)

    def _read_certificate(self) -> bytes:
        user, place = self._user, self._login.place
        if self._exec_status and self._exec_status.client_certificate_data:
            return f"{self._exec_status.client_certificate_data}\n{self._exec_status.client_key_data}".encode()
        certificate = _read_field(place, "client-certificate", user.client_certificate, user.client_certificate_data)
        return certificate and certificate + b"\n" + _read_field(
            place, "client-key", user.client_key, user.client_key_data
        )


def load(file: str = "", context: str = "", env: Mapping[str, str] = os.environ) -> Credentials:
    """Return the credentials of --kubeconfig `file` and --context `context`; "" where the option is absent."""
    return Credentials(find_login(file, context, env), env)


def find_namespace(file: str = "", context: str = "", env: Mapping[str, str] = os.environ) -> str:
    """Return the namespace of the context, or of the pod; "default" where neither says one."""
    return find_login(file, context, env).namespace or "default"


def find_login(file: str, context: str, env: Mapping[str, str]) -> Login:
    config = read_kubeconfig(file, env)
    if config is not None:
        return kubeconfig.resolve(config, context)
    if not context and env.get("KUBERNETES_SERVICE_HOST"):
        return read_service_account(env)
    searched_path = env.get("KUBECONFIG") or "~/.kube/config"
    raise InputError(f"{searched_path}: there is no kubeconfig, and this is no pod. Name one with --kubeconfig.")


def read_kubeconfig(file: str, env: Mapping[str, str]) -> kubeconfig.Kubeconfig | None:
    """Read the file, or merge the files of $KUBECONFIG, which need not all exist. Return None if there is none."""
    home = Path(env.get("HOME") or "~").expanduser()
    default_files = [name for name in env.get("KUBECONFIG", "").split(os.pathsep) if name]
    default_files = default_files or [str(home / ".kube" / "config")]
    configs = []
    for name in [file] if file else default_files:
        try:
            if Path(name).exists():
                configs.append(kubeconfig.parse(read_settings(name), name))
            elif file:
                raise InputError(f"{file}: there is no such file. Check --kubeconfig.")
        except OSError as error:  # its folder may not be looked into
            raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from None
    return kubeconfig.merge(configs) if configs else None


def read_service_account(env: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Login:
    """Return the login of the pod's service account."""
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if find_url_problem(server):
        raise InputError(f"$KUBERNETES_SERVICE_HOST, $KUBERNETES_SERVICE_PORT: expected an address, got {server!r}.")
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


def _read_authority(login: Login) -> bytes:
    file, data = login.cluster.certificate_authority, login.cluster.certificate_authority_data
    return _read_field(login.place, "certificate-authority", file, data)


def _build_tls_context(login: Login, authority: bytes) -> ssl.SSLContext:
    cluster = login.cluster
    if not authority and (cluster.certificate_authority or cluster.certificate_authority_data):
        # Without one, everybody whom the system trusts would be trusted: a file caught half-written must not do that.
        raise InputError(f"{login.place}: certificate-authority: expected certificates in PEM, got nothing.")
    try:
        tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise InputError(f"{login.place}: certificate-authority: expected certificates in PEM.") from None
    # Python 3.13 asks for extensions that the authorities of many clusters lack, and that Go does not ask for.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.insecure_skip_tls_verify:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


def _read_field(place: str, field: str, file: str, data: str) -> bytes:
    """Return the content of a field that is given as a file or as `-data`; the latter wins."""
    if data:
        return kubeconfig.decode_base64(data, f"{place}: {field}-data")
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise _build_read_error(place, field, file, error) from None


def _build_read_error(place: str, field: str, file: str, error: OSError | UnicodeDecodeError) -> InputError:
    problem = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or error
    return InputError(f"{place}: {field}: cannot read {file}: {problem}.")


def _refuse_password() -> str:
    """For a key that is encrypted: OpenSSL would ask at the terminal, and wait."""
    raise ValueError("the key is encrypted")
