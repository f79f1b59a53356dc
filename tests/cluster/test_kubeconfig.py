"""Kubeconfig files: parsing, merging, choosing, and what is said about those that are wrong."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from wukong.cluster.credentials import load, read_kubeconfig, read_service_account
from wukong.cluster.kubeconfig import decode_base64, merge, parse, resolve
from wukong.errors import InputError


def a_config(name: str, *, current: str = "", server: str = "https://one:6443", user: str = "token: t") -> str:
    return f"""
current-context: {current!r}
clusters: [{{name: {name}, cluster: {{server: "{server}"}}}}]
users: [{{name: {name}, user: {{{user}}}}}]
contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}, namespace: {name}-ns}}}}]
preferences: {{}}
"""


@pytest.mark.parametrize(
    ("files", "context", "server", "namespace"),
    [
        ([a_config("a", current="a")], "", "https://one:6443", "a-ns"),
        ([a_config("a", current="a"), a_config("b", current="b", server="https://b")], "", "https://one:6443", "a-ns"),
        ([a_config("a"), a_config("b", current="b", server="https://b")], "", "https://b", "b-ns"),
        ([a_config("a", current="a"), a_config("b", server="https://b")], "b", "https://b", "b-ns"),
        ([a_config("a", current="a"), a_config("a", server="https://later")], "", "https://one:6443", "a-ns"),
        (["users: null\ncontexts:\nclusters: []", a_config("a", current="a")], "", "https://one:6443", "a-ns"),
        (["", a_config("a", current="a")], "", "https://one:6443", "a-ns"),
    ],
)
def test_of_equal_names_and_current_contexts_the_first_file_wins(
    files: list[str], context: str, server: str, namespace: str
) -> None:
    login = resolve(merge(parse(text, f"/kube/{number}") for number, text in enumerate(files)), context)
    assert (login.cluster.server, login.namespace) == (server, namespace)


def test_an_entry_is_never_mixed_from_two_files() -> None:
    first, second = a_config("a", current="a", user="token: t"), a_config("a", user="username: u, password: p")
    assert resolve(merge([parse(first, "1"), parse(second, "2")])).user.username == ""


def test_paths_are_relative_to_their_own_file_and_bare_commands_to_path() -> None:
    text = """
clusters: [{name: c, cluster: {server: "https://c", certificate-authority: ca.pem}}]
users:
- {name: u, user: {client-certificate: /abs/c.pem, client-key: keys/k.pem, tokenFile: t, exec: {command: bin/login}}}
- {name: v, user: {exec: {command: aws, args: [eks], env: [{name: A, value: b}]}}}
"""
    config = parse(text, "/home/me/.kube/config")
    user = config.users["u"]
    assert config.clusters["c"].certificate_authority == "/home/me/.kube/ca.pem"
    assert (user.client_certificate, user.client_key) == ("/abs/c.pem", "/home/me/.kube/keys/k.pem")
    assert user.token_file == "/home/me/.kube/t"
    assert user.exec is not None
    assert user.exec.command == "/home/me/.kube/bin/login"
    other = config.users["v"].exec
    assert other is not None
    assert other.command == "aws"


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        (a_config("prod"), "prd", 'file: $.contexts: no context "prd". Did you mean "prod"? Known: prod.'),
        (
            a_config("prod"),
            "",
            "file: $.current-context: expected the name of a context, got none. Choose one of: prod.",
        ),
        ("", "x", 'file: $.contexts: no context "x". There is no context at all.'),
        (a_config("a", server="one:6443"), "a", "$.clusters[a].server: expected an address such as https://"),
        (a_config("a", server="https://[::1:6443"), "a", "$.clusters[a].server: expected an address such as https://"),
        (a_config("a", server="https://:6443"), "a", "$.clusters[a].server: expected an address such as https://"),
        (a_config("a", server="https://one:port"), "a", "$.clusters[a].server: expected an address such as https://"),
        (a_config("a", server="tcp://u:pw@one"), "a", "got 'tcp://***@one'"),
        (a_config("a", server="https://u:pw@one"), "a", "$.clusters[a].server: expected an address without user"),
        (a_config("a", user='token: "a\\nb"'), "a", "$.users[a].token: expected one line of text"),
        (
            a_config("a", user='token: t, as-groups: [a, "\\0"]'),
            "a",
            "$.users[a].as-groups[1]: expected one line of text",
        ),
        (a_config("a", user="client-key: k"), "a", "$.users[a]: a certificate and its key go together."),
        (a_config("a", user="auth-provider: {name: gcp}"), "a", "$.users[a].auth-provider: no longer part of"),
        (
            a_config("a", user='exec: {command: c, apiVersion: "client.authentication.k8s.io/v1alpha1"}'),
            "a",
            'Did you mean "client.authentication.k8s.io/v1',
        ),
        (a_config("a", user="token: 12"), "a", "file: $.users[0].user.token: expected str, got int."),
        ("contexts: [{name: a, context: {cluster: c}}]", "a", '$.contexts[a].cluster: no cluster "c".'),
        ("clusters: [{name: a}, {name: a}]", "a", 'file: $.clusters: two entries are called "a".'),
        ("a: [", "", "file: broken YAML"),
        ("[]", "a", "file: $: expected object"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, context: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(parse(text, "file"), context)
    assert expected in str(caught.value)


@pytest.mark.parametrize(("host", "port"), [("10.96.0.1", "tcp://10.96.0.1:443"), ("[", "443"), ("a b/", "x")])
def test_a_pod_without_an_address_of_its_server_is_told_so(host: str, port: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\$KUBERNETES_SERVICE_HOST"):
        read_service_account({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, tmp_path)


def test_data_that_is_no_base64_is_said_so() -> None:
    assert decode_base64(base64.b64encode(b"pem").decode() + "\n", "x") == b"pem"
    with pytest.raises(InputError, match="x: expected base64"):
        decode_base64("{}", "x")


def test_a_list_of_files_may_have_gaps_a_named_file_may_not(tmp_path: Path) -> None:
    (tmp_path / "b").write_text(a_config("b", current="b"))
    config = read_kubeconfig("", {"KUBECONFIG": f"{tmp_path / 'a'}:{tmp_path / 'b'}:"})
    assert config is not None
    assert list(config.contexts) == ["b"]
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / "a"), env={})
    with pytest.raises(InputError, match="no kubeconfig, and this is no pod"):
        load(env={"HOME": str(tmp_path)})


def test_the_home_has_the_default_file(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(a_config("a", current="a"))
    assert load(env={"HOME": str(tmp_path)}).server == "https://one:6443"


@pytest.mark.parametrize(
    ("env", "server"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, "https://10.0.0.1:6443"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": ""}, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443"),
    ],
)
def test_the_server_of_a_pod_is_at_its_port_or_at_that_of_https(
    env: dict[str, str], server: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("t")
    assert read_service_account(env, tmp_path).cluster.server == server
    assert read_service_account(env, tmp_path).namespace == "default"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "namespace").write_text("shop")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    login = read_service_account(env, tmp_path)
    assert (login.cluster.server, login.namespace) == ("https://[fd00::1]:6443", "shop")
    assert login.user.token_file == str(tmp_path / "token")
    (tmp_path / "token").unlink()
    with pytest.raises(InputError, match="automountServiceAccountToken"):
        read_service_account(env, tmp_path)


@pytest.mark.parametrize(
    "server",
    [
        "https://[::1",
        "https://::1]:6443",
        "https://[fd00::zz]:6443",
        "https://host:port",
        "https://host:99999",
        "https://",
        "https://a b",
        "https://a\\nb",
        "https://" + "a" * 300,
        "ftp://host",
        "",
    ],
)
def test_an_address_that_cannot_be_one_is_told_before_connecting(server: str) -> None:
    with pytest.raises(
        InputError, match=r"k: \$\.clusters\[a\]\.server: expected an address such as https://10\.0\.0\.1:6443"
    ):
        resolve(parse(a_config("a", current="a", server=server), "k"))


def test_a_proxy_whose_address_is_broken_is_told_without_its_password(tmp_path: Path) -> None:
    text = a_config("a", current="a").replace(
        "cluster: {server:", "cluster: {proxy-url: 'http://u:secret@[::1', server:"
    )
    (tmp_path / "config").write_text(text)
    with pytest.raises(InputError, match="proxy-url: expected an address") as caught:
        load(str(tmp_path / "config"))
    assert "secret" not in str(caught.value)


def test_a_context_without_a_namespace_is_in_default() -> None:
    text = a_config("a", current="a").replace(", namespace: a-ns", "")
    assert resolve(parse(text, "config")).namespace == "default"


@pytest.mark.parametrize("field", ["certificate-authority: ca.crt", 'certificate-authority-data: "YQ=="'])
def test_an_authority_and_leave_to_skip_it_exclude_each_other(field: str) -> None:
    """Which of them counts must not be a matter of who reads the file: the safe one is asked for."""
    skipping = ", insecure-skip-tls-verify: true}"
    text = a_config("a", current="a").replace('server: "https://one:6443"}', f'server: "https://one:6443", {field}}}')
    assert resolve(parse(text, "config")).cluster.server == "https://one:6443"
    with pytest.raises(InputError, match="insecure-skip-tls-verify exclude each other"):
        resolve(parse(text.replace(f"{field}}}", f"{field}{skipping}"), "config"))
