"""What a node costs: its label, then the file, then the table; wrong files are told what is wrong, all of it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from wukong.errors import InputError
from wukong.placement.price_table import SPOT_SHARE, find_list_price
from wukong.placement.prices import PRICE_LABEL, ZONE_LABEL, Prices, read_prices

TYPE, OLD_TYPE = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
FILE = b"""
asOf: 2026-11-01
currency: EUR
prices:
- {instanceType: m5.large, perHour: 0.2}
- {instanceType: m5.large, perHour: 0.3, zone: a}
- {instanceType: m5.large, perHour: 0.05, capacity: spot}
- {instanceType: m5.large, perHour: 0.04, capacity: spot, zone: a}
- {instanceType: own.big, perHour: 2}
- {instanceType: only.spot, perHour: 1, capacity: spot}
nodes: {metal: 0.42, free: 0}
"""


@pytest.mark.parametrize(
    ("name", "labels", "is_spot", "expected"),
    [
        ("metal", {PRICE_LABEL: "0.7", TYPE: "m5.large"}, False, 0.7),  # the label is nearest
        ("metal", {TYPE: "m5.large"}, True, 0.42),  # then the node by name
        ("free", {TYPE: "m5.large"}, False, 0.0),
        ("n", {TYPE: "m5.large"}, False, 0.2),
        ("n", {TYPE: "m5.large", ZONE_LABEL: "a"}, False, 0.3),
        ("n", {TYPE: "m5.large", ZONE_LABEL: "b"}, False, 0.2),
        ("n", {TYPE: "m5.large"}, True, 0.05),
        ("n", {TYPE: "m5.large", ZONE_LABEL: "a"}, True, 0.04),
        ("n", {OLD_TYPE: "own.big"}, False, 2.0),
        ("n", {TYPE: "own.big", OLD_TYPE: "m5.large"}, False, 2.0),
        ("n", {TYPE: "own.big"}, True, 2.0 * SPOT_SHARE),  # an estimate
        ("n", {TYPE: "only.spot"}, False, math.nan),
        ("n", {TYPE: "c5.large"}, False, 0.085),  # not in the file: the table
        ("n", {TYPE: "c5.large"}, True, 0.085 * SPOT_SHARE),
        ("n", {TYPE: "unheard.of"}, False, math.nan),
        ("n", {}, False, math.nan),
        ("n", {PRICE_LABEL: "0"}, False, 0.0),
        ("n", {PRICE_LABEL: "dear", TYPE: "c5.large"}, False, 0.085),
        ("n", {PRICE_LABEL: "-1", TYPE: "c5.large"}, False, 0.085),
        ("n", {PRICE_LABEL: "nan", TYPE: "c5.large"}, False, 0.085),
        ("n", {PRICE_LABEL: "inf", TYPE: "c5.large"}, False, 0.085),
    ],
)
def test_the_nearest_price_counts(name: str, labels: dict[str, str], is_spot: bool, expected: float) -> None:
    assert read_prices(FILE).price_of(name, labels, is_spot) == pytest.approx(expected, nan_ok=True)


def test_without_a_file_the_table_is_asked() -> None:
    assert Prices().price_of("n", {TYPE: "m5.xlarge"}, False) == pytest.approx(0.192)
    assert Prices().price_of("n", {TYPE: "m5.xlarge"}, True) == pytest.approx(0.192 * SPOT_SHARE)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("m5.large", 0.096),
        ("m5.xlarge", 0.192),
        ("m5.24xlarge", 4.608),
        ("c6g.medium", 0.034),
        ("t3.micro", 0.0104),
        ("m7i-flex.2xlarge", 0.38304),
        ("g5.xlarge", 1.006),
        ("n1-standard-4", 0.19),
        ("e2-highmem-2", 0.090392),
        ("Standard_D4s_v5", 0.192),
        ("Standard_E8as_v5", 0.452),
        ("Standard_F2s_v2", 0.0846),
        ("Standard_B2ms", 0.0832),
        ("m5.metal", None),
        ("x99.large", None),
        ("n9-standard-4", None),
        ("Standard_Q4s_v5", None),
        ("m5.large.", None),
        ("", None),
    ],
)
def test_the_table_knows_common_types_by_family_and_size(kind: str, expected: float | None) -> None:
    assert find_list_price(kind) == (None if expected is None else pytest.approx(expected))


AWS_FAMILIES = (
    "t2 t3 t3a t4g m4 m5 m5a m5d m5n m6a m6g m6gd m6i m6id m7a m7g m7i m7i-flex m8g "
    "c4 c5 c5a c5d c5n c6a c6g c6gn c6i c6id c7a c7g c7i c7i-flex c8g "
    "r4 r5 r5a r5d r5n r6a r6g r6i r6id r7a r7g r7i r8g i3 i3en i4i i4g z1d"
)
GCP_FAMILIES = (
    "e2-standard e2-highmem e2-highcpu n1-standard n1-highmem n1-highcpu n2-standard n2-highmem n2-highcpu "
    "n2d-standard n2d-highmem n2d-highcpu c2-standard c2d-standard c3-standard t2d-standard"
)
AZURE_FAMILIES = "Ds_v3 D_v3 Ds_v4 Ds_v5 Das_v4 Das_v5 Dps_v5 Dds_v5 Es_v3 Es_v4 Es_v5 Eas_v5 Eds_v5 Fs_v2 Bms Bs"
TYPES_OF_TWO_CORES = [
    *(f"{family}.large" for family in AWS_FAMILIES.split()),
    *(f"{family}-2" for family in GCP_FAMILIES.split()),
    *(f"Standard_{family[0]}2{family[1:]}" for family in AZURE_FAMILIES.split()),
]


@pytest.mark.parametrize("kind", TYPES_OF_TWO_CORES)
def test_two_cores_of_any_common_family_cost_some_cents_an_hour(kind: str) -> None:
    price = find_list_price(kind)
    assert price is not None
    assert 0.04 <= price <= 0.23


@pytest.mark.parametrize(
    ("kinds", "most"),
    [
        *((f"{family}.nano {family}.micro {family}.small {family}.medium {family}.large", 2.05) for family in
          ("t2", "t3", "t3a", "t4g")),
        ("p3.2xlarge p3.8xlarge p3.16xlarge", 4.0),
        ("g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.12xlarge", 2.0),
        ("g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.12xlarge g5.48xlarge", 3.0),
        ("g6.xlarge g6.2xlarge g6.4xlarge", 2.0),
    ],
)  # fmt: skip
def test_a_size_with_a_price_of_its_own_costs_more_than_the_next_smaller_and_not_much_more(
    kinds: str, most: float
) -> None:
    prices = [find_list_price(kind) for kind in kinds.split()]
    for smaller, larger in pairwise(prices):
        assert smaller is not None
        assert larger is not None
        assert 1.0 < larger / smaller <= most


@pytest.mark.parametrize("text", ["", "{}", "# nothing yet", "prices: []", "asOf: 2026-11-01"])
def test_every_part_of_a_file_is_optional(text: str) -> None:
    assert math.isnan(read_prices(text.encode()).price_of("n", {}, False))


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "prices: [{instanceType: a, perHour: -1}, {instanceType: b, perHour: 1, capacity: Spot}]\nnodes: {n: .inf}",
            [
                "$.prices[0].perHour: expected a price per hour that is not negative, got -1.0.",
                "$.prices[1].capacity: expected spot or on-demand, got 'Spot'.",
                "$.nodes.n: expected a price per hour that is not negative, got inf.",
            ],
        ),
        ("prices: [{instanceType: a}]", ["$.prices[0]: object missing required field perHour."]),
        ("prices: [{instanceType: a, perHour: cheap}]", ["$.prices[0].perHour: expected float, got str."]),
        ("price: []", ["$: object contains unknown field price."]),
        ("- a", ["$: expected object, got array."]),
        ("[]", ["$: expected object, got array."]),
        ("just words", ["$: expected object, got str."]),
        (
            "prices: [{instanceType: a, perHour: 1, zone: z}, {instanceType: a, perHour: 2, zone: z}]",
            ["$.prices[1]: expected one price for each, got a second for a, on-demand, z."],
        ),
    ],
)
def test_a_wrong_file_is_told_all_that_is_wrong_and_where(text: str, problems: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_prices(text.encode())
    assert list(caught.value.problems) == problems


def test_broken_yaml_is_told_where() -> None:
    with pytest.raises(InputError, match="broken YAML: line 2, column 1: "):
        read_prices(b"a: [\n")


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe\x00", b"a: !!bool maybe", b"a: !!int ''", b"a: &x [*x]", b"[" * 5000, b"? [a]\n: b", b"--- a\n--- b"],
)
def test_whatever_the_bytes_are_they_are_only_wrong_input(data: bytes) -> None:
    with pytest.raises(InputError, match=r"broken YAML|expected|unknown"):
        read_prices(data)
