"""No password or token is left in a message; what helps to find the fault is."""

from __future__ import annotations

import pytest

from wukong.cluster.redaction import redact, redact_urls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://u:p@prometheus:9090", "http://***@prometheus:9090"),
        ("'https://u:p%40w@h/path?q=a@b' failed", "'https://***@h/path?q=a@b' failed"),
        ("http://u:p@w@host:1", "http://***@host:1"),
        ("http://t0k3n@host", "http://***@host"),
        ("http://u:pa/ss@host", "http://***@host"),
        ("http://u:pa#ss?x@host/a", "http://***@host/a"),
        ("http://host:9090/a?mail=x@y", "http://host:9090/a?mail=x@y"),
        ("http://[::1]:9090/a", "http://[::1]:9090/a"),
        ("one http://a:b@x and https://c:d@y", "one http://***@x and https://***@y"),
        ("mail me at a@b.c", "mail me at a@b.c"),
    ],
)
def test_the_user_part_of_an_address_is_hidden(text: str, expected: str) -> None:
    assert redact_urls(text) == expected
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'error: {"token": "S3CRET"} is not valid',
        "password=S3CRET; try again",
        "--client-secret: 'S3CRET with blanks'",
        "Authorization: Bearer S3CRET",
        "Basic S3CRET",
        "AWS_SECRET_ACCESS_KEY=S3CRET",
        "got S3CRETabcdefghijklmnopqrstuvw0123456789 from the server",
        "eyJS3CRETGciOiJSUzI1NiIsImtpZCI6.S3CRETeyJpc3M.S3CRETsig",
        "-----BEGIN RSA PRIVATE KEY-----\nS3CRET\nS3CRET\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nS3CRET",
        "https://me:S3CRET@host/login",
    ],
)
def test_what_a_program_says_keeps_no_secret(text: str) -> None:
    assert "S3CRET" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "please log in: run `gcloud auth login` at https://accounts.example.com/o/oauth2",
        "could not find /home/me/.config/gcloud/application_default_credentials.json",
        "An error occurred (ExpiredTokenException) when calling the AssumeRole operation",
        "dial tcp 10.0.0.1:443: connect: connection refused",
        "getting credentials: exec: executable aws-iam-authenticator failed with exit code 1",
    ],
)
def test_what_helps_is_kept(text: str) -> None:
    assert redact(text) == text
