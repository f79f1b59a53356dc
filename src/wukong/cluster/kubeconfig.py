"""Kubeconfig files as values: parsed, merged and resolved to the one Login a context means. Pure: texts in, values out.

credentials.py reads the files and uses the Login. Merging is kubectl's: of entries with the same name, and of several
current-contexts, the first file's wins whole. Paths inside a file are relative to that file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import PurePath
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from wukong.api.decode import readable
from wukong.api.documents import without_nulls
from wukong.cluster.http_address import is_http_address
from wukong.cluster.redaction import redact_urls
from wukong.errors import InputError, nearest

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ClusterEntry(msgspec.Struct, rename="kebab", kw_only=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(msgspec.Struct):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel", kw_only=True):
    """A program that prints an ExecCredential."""

    command: str
    api_version: str = EXEC_VERSIONS[0]
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class UserEntry(msgspec.Struct, rename="kebab", kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, object] | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []


class ContextEntry(msgspec.Struct, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterEntry = msgspec.field(default_factory=ClusterEntry)


class _NamedUser(msgspec.Struct):
    name: str
    user: UserEntry = msgspec.field(default_factory=UserEntry)


class _NamedContext(msgspec.Struct):
    name: str
    context: ContextEntry = msgspec.field(default_factory=ContextEntry)


class _File(msgspec.Struct, rename="kebab", kw_only=True):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


class Kubeconfig(msgspec.Struct, kw_only=True):
    """One file or several merged. `files` are the names for messages; the entries are by name."""

    files: tuple[str, ...] = ()
    current_context: str = ""
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}

    @property
    def place(self) -> str:
        return ", ".join(self.files) or "kubeconfig"


class Login(msgspec.Struct, kw_only=True):
    """Where to connect and as whom. `place` is where that is written, for messages."""

    place: str
    cluster: ClusterEntry
    user: UserEntry = msgspec.field(default_factory=UserEntry)
    namespace: str = "default"


E = TypeVar("E")


def parse(text: bytes | str, file: str) -> Kubeconfig:
    """Parse one file. `file` is its path, for messages and as the base of relative paths."""
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        # An empty kubeconfig is written with `users: null`.
        content = msgspec.convert(without_nulls({} if document is None else document), _File)
    except yaml.YAMLError as error:
        raise InputError(f"{file}: broken YAML: {' '.join(str(error).split())}. Is it a kubeconfig?") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: {readable(error)}") from None
    folder = PurePath(file).parent
    for cluster in content.clusters:
        _resolve_paths(cluster.cluster, folder, "certificate_authority")
    for user in content.users:
        _resolve_paths(user.user, folder, "client_certificate", "client_key", "token_file")
        if user.user.exec and "/" in user.user.exec.command:  # a bare name is looked up on PATH
            _resolve_paths(user.user.exec, folder, "command")
    return Kubeconfig(
        files=(file,),
        current_context=content.current_context,
        clusters=_by_name(((entry.name, entry.cluster) for entry in content.clusters), f"{file}: $.clusters"),
        users=_by_name(((entry.name, entry.user) for entry in content.users), f"{file}: $.users"),
        contexts=_by_name(((entry.name, entry.context) for entry in content.contexts), f"{file}: $.contexts"),
    )


def merge(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    merged = Kubeconfig()
    for config in configs:
        merged = Kubeconfig(
            files=merged.files + config.files,
            current_context=merged.current_context or config.current_context,
            clusters={**config.clusters, **merged.clusters},
            users={**config.users, **merged.users},
            contexts={**config.contexts, **merged.contexts},
        )
    return merged


def resolve(config: Kubeconfig, context: str = "") -> Login:
    """Return the login of a context; "" is the current one."""
    place, name = config.place, context or config.current_context
    if not name:
        choices = f"Choose one of: {', '.join(config.contexts)}." if config.contexts else "It has no contexts."
        raise InputError(f"{place}: $.current-context: expected the name of a context, got none. {choices}")
    chosen = _look_up(config.contexts, name, f"{place}: $.contexts", "context")
    context_place = f"{place}: $.contexts[{name}]"
    cluster = _look_up(config.clusters, chosen.cluster, f"{context_place}.cluster", "cluster")
    user = _look_up(config.users, chosen.user, f"{context_place}.user", "user") if chosen.user else UserEntry()
    problems = _find_problems(
        cluster, f"{place}: $.clusters[{chosen.cluster}]", user, f"{place}: $.users[{chosen.user}]"
    )
    if problems:
        raise InputError(*problems)
    return Login(place=context_place, cluster=cluster, user=user, namespace=chosen.namespace or "default")


def decode_base64(data: str, place: str) -> bytes:
    """Return the bytes of a `*-data` field."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{place}: expected base64, got something else: {error}.") from None


def is_header_value(text: str) -> bool:
    """Tell whether it can be sent in a header: a line break, as of a file half written, would begin another."""
    return text.isprintable()


def _find_problems(cluster: ClusterEntry, cluster_place: str, user: UserEntry, user_place: str) -> list[str]:
    problems = []
    if not is_http_address(cluster.server):
        expected = "expected an address such as https://10.0.0.1:6443"
        problems.append(f"{cluster_place}.server: {expected}, got {redact_urls(cluster.server)!r}.")
    elif "@" in urlsplit(cluster.server).netloc:
        fix = "Write them as username and password of the user"
        problems.append(f"{cluster_place}.server: expected an address without user and password. {fix}.")
    sent = {"token": user.token, "username": user.username, "as": user.as_user, "as-uid": user.as_uid}
    sent |= {f"as-groups[{index}]": group for index, group in enumerate(user.as_groups)}
    for field, value in sent.items():
        if not is_header_value(value):
            problems.append(f"{user_place}.{field}: expected one line of text, got control characters in it.")
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        both = "certificate-authority and insecure-skip-tls-verify exclude each other"
        problems.append(f"{cluster_place}: {both}. Remove the latter to have TLS verified.")
    if user.auth_provider:
        problems.append(f"{user_place}.auth-provider: no longer part of Kubernetes. Use an exec plugin.")
    if user.exec and user.exec.api_version not in EXEC_VERSIONS:
        hint = nearest(user.exec.api_version, EXEC_VERSIONS)
        problems.append(f"{user_place}.exec.apiVersion: unknown version {user.exec.api_version!r}.{hint}")
    has_certificate = bool(user.client_certificate or user.client_certificate_data)
    if has_certificate != bool(user.client_key or user.client_key_data):
        lacking = "client-key" if has_certificate else "client-certificate"
        problems.append(f"{user_place}: a certificate and its key go together. Add {lacking} or {lacking}-data.")
    return problems


def _look_up(entries: dict[str, E], name: str, place: str, what: str) -> E:
    if name in entries:
        return entries[name]
    choices = f" Known: {', '.join(entries)}." if entries else f" There is no {what} at all."
    raise InputError(f'{place}: no {what} "{name}".{nearest(name, entries)}{choices}')


def _by_name(entries: Iterable[tuple[str, E]], place: str) -> dict[str, E]:
    entries_by_name: dict[str, E] = {}
    for name, entry in entries:
        if name in entries_by_name:
            raise InputError(f'{place}: two entries are called "{name}". Rename or remove one.')
        entries_by_name[name] = entry
    return entries_by_name


def _resolve_paths(entry: msgspec.Struct, folder: PurePath, *fields: str) -> None:
    for field in fields:
        if getattr(entry, field):
            setattr(entry, field, str(folder / getattr(entry, field)))
