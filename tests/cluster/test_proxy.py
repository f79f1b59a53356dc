"""Proxy variables, as Go's net/http reads them."""

import pytest

from wukong.cluster.proxy import find_proxy
from wukong.errors import InputError

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_direct"),
    [
        ("https://api.example.com:6443", "", False),
        ("https://api.example.com:6443", "example.com", True),
        ("https://api.example.com:6443", ".example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://api.example.com:6443", "*.example.com", True),
        ("https://notexample.com", "example.com", False),
        ("https://api.example.com:6443", "api.example.com:6443", True),
        ("https://api.example.com:6443", "api.example.com:443", False),
        ("https://10.96.0.1:443", "10.96.0.0/12,localhost", True),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://10.96.0.1:443", "10.0.0.0/16", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
        ("https://[fd00::1]:443", "[fd00::1]:444", False),
        ("https://[fd00::1]:443", "[fd00::1:443", False),
        ("https://[fd00::1]:443", "fd00::1", True),
        ("https://anything", "*", True),
        ("https://anything", "anything:443", True),
        ("https://anything", f"anything:{'9' * 5000}", False),
        ("https://anything", "anything:²", False),
        ("https://anything", "10.0.0.0/²,[,]:,::", False),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
def test_no_proxy(server: str, no_proxy: str, is_direct: bool) -> None:
    assert find_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}) == ("" if is_direct else PROXY)


def test_each_scheme_has_its_variable_in_either_case() -> None:
    assert find_proxy("http://one", {"HTTPS_PROXY": PROXY}) == ""
    assert find_proxy("https://one", {"https_proxy": "proxy:3128"}) == PROXY
    with pytest.raises(InputError, match="SOCKS is not supported"):
        find_proxy("https://one", {"HTTPS_PROXY": "socks5://proxy"})


@pytest.mark.parametrize(
    "proxy", ["socks5://me:S3CRET@proxy", "http://me:S3CRET@", "me:S3CRET@[::1", "http://me:S3CRET@p:x"]
)
def test_no_password_of_a_proxy_is_told(proxy: str) -> None:
    with pytest.raises(InputError, match=r"\$HTTPS_PROXY: expected an .*, got .*\*\*\*@") as caught:
        find_proxy("https://one", {"HTTPS_PROXY": proxy})
    assert "S3CRET" not in str(caught.value)
