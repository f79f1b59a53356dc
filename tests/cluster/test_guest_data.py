"""What guests are told is replaced, field by field, by what KubeVirt would still read; the rest stays."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.cluster.guest_data import hide_guest_data
from wukong.cluster.redaction import HIDDEN


@pytest.mark.parametrize(
    ("field", "value", "hidden"),
    [
        ("userData", "#cloud-config", HIDDEN),
        ("networkData", "version: 2", HIDDEN),
        ("kernelArgs", "password=x", HIDDEN),
        ("secretName", "db-password", HIDDEN),
        ("userDataBase64", "c2VjcmV0", "Kioq"),
        ("networkDataBase64", "c2VjcmV0", "Kioq"),
        ("userData", "", ""),
        ("userData", 7, 7),
        ("exec", {"command": ["mysql", "-psecret"]}, {"command": [HIDDEN]}),
        ("httpHeaders", [{"name": "Authorization", "value": "x"}], []),
        ("accessCredentials", [{"sshPublicKey": {}}], []),
        ("secretRef", {"name": "db-password"}, {"name": HIDDEN}),
        ("networkDataSecretRef", {"name": "db-password"}, {"name": HIDDEN}),
        ("annotations", {"owner": "jane"}, {}),
        ("exec", {}, {}),
        ("annotations", None, None),
        ("image", "registry.example/web:1", "registry.example/web:1"),
        ("cores", 4, 4),
    ],
)
def test_a_field_is_hidden_wherever_it_stands(field: str, value: Any, hidden: Any) -> None:
    assert hide_guest_data({field: value}) == {field: hidden}
    document = {"template": {"volumes": [{"name": "root", "cloudInitNoCloud": {field: value}}]}}
    expected = {"template": {"volumes": [{"name": "root", "cloudInitNoCloud": {field: hidden}}]}}
    assert hide_guest_data(document) == expected
    assert document["template"]["volumes"][0]["cloudInitNoCloud"] == {field: value}, "it is a copy"
