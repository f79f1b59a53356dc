"""List prices of common instance types, for clusters where nobody gave us prices: good enough to tell cheap from dear.

Asked by prices.py. US dollars per hour, Linux, on demand, in each cloud's oldest US region, as published at AS_OF; most
families cost in proportion to their size, so a family is one number. Spot prices change by the hour: an estimate.
"""

from __future__ import annotations

import re

AS_OF = "2025-06-01"
SPOT_SHARE = 0.35  # of the on-demand price: what spot capacity costs most of the time; a guess, and documented as one

_AWS_LARGE: dict[str, float] = {  # family → its .large
    "t2": 0.0928, "t3": 0.0832, "t3a": 0.0752, "t4g": 0.0672,
    "m4": 0.1, "m5": 0.096, "m5a": 0.086, "m5d": 0.113, "m5n": 0.119, "m6a": 0.0864, "m6g": 0.077, "m6gd": 0.0904,
    "m6i": 0.096, "m6id": 0.11865, "m7a": 0.11592, "m7g": 0.0816, "m7i": 0.1008, "m7i-flex": 0.09576, "m8g": 0.08976,
    "c4": 0.1, "c5": 0.085, "c5a": 0.077, "c5d": 0.096, "c5n": 0.108, "c6a": 0.0765, "c6g": 0.068, "c6gn": 0.0864,
    "c6i": 0.085, "c6id": 0.1008, "c7a": 0.10264, "c7g": 0.0725, "c7i": 0.08925, "c7i-flex": 0.08479, "c8g": 0.07976,
    "r4": 0.133, "r5": 0.126, "r5a": 0.113, "r5d": 0.144, "r5n": 0.149, "r6a": 0.1134, "r6g": 0.1008, "r6i": 0.126,
    "r6id": 0.1512, "r7a": 0.15215, "r7g": 0.1071, "r7i": 0.1323, "r8g": 0.11782, "i3": 0.156, "i3en": 0.226,
    "i4i": 0.172, "i4g": 0.1544, "z1d": 0.186,
}  # fmt: skip
_AWS_EXACT: dict[str, float] = {
    "t2.nano": 0.0058, "t2.micro": 0.0116, "t2.small": 0.023, "t2.medium": 0.0464,
    "t3.nano": 0.0052, "t3.micro": 0.0104, "t3.small": 0.0208, "t3.medium": 0.0416,
    "t3a.nano": 0.0047, "t3a.micro": 0.0094, "t3a.small": 0.0188, "t3a.medium": 0.0376,
    "t4g.nano": 0.0042, "t4g.micro": 0.0084, "t4g.small": 0.0168, "t4g.medium": 0.0336,
    "p3.2xlarge": 3.06, "p3.8xlarge": 12.24, "p3.16xlarge": 24.48, "g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752,
    "g4dn.4xlarge": 1.204, "g4dn.8xlarge": 2.176, "g4dn.12xlarge": 3.912, "g5.xlarge": 1.006, "g5.2xlarge": 1.212,
    "g5.4xlarge": 1.624, "g5.8xlarge": 2.448, "g5.12xlarge": 5.672, "g5.48xlarge": 16.288, "g6.xlarge": 0.8048,
    "g6.2xlarge": 0.9776, "g6.4xlarge": 1.3232,
}  # fmt: skip
_GCP_PER_CPU: dict[str, float] = {
    "e2-standard": 0.033503, "e2-highmem": 0.045196, "e2-highcpu": 0.024733,
    "n1-standard": 0.0475, "n1-highmem": 0.0592, "n1-highcpu": 0.035445,
    "n2-standard": 0.048559, "n2-highmem": 0.065506, "n2-highcpu": 0.035851,
    "n2d-standard": 0.042246, "n2d-highmem": 0.05699, "n2d-highcpu": 0.03119,
    "c2-standard": 0.0522, "c2d-standard": 0.045408, "c3-standard": 0.05205, "t2d-standard": 0.042246,
}  # fmt: skip
_AZURE_PER_CPU: dict[str, float] = {  # family and features without the size → per vCPU
    "Ds_v3": 0.048, "D_v3": 0.048, "Ds_v4": 0.048, "Ds_v5": 0.048, "Das_v4": 0.048, "Das_v5": 0.043, "Dps_v5": 0.0385,
    "Dds_v5": 0.0565, "Es_v3": 0.063, "Es_v4": 0.063, "Es_v5": 0.063, "Eas_v5": 0.0565, "Eds_v5": 0.072,
    "Fs_v2": 0.0423, "Bms": 0.0416, "Bs": 0.0208,
}  # fmt: skip
_AWS_SIZE = re.compile(r"(?P<family>[a-z0-9-]+)\.(?:(?P<times>\d+)?(?P<x>xlarge)|(?P<small>large|medium))")
_GCP_SIZE = re.compile(r"(?P<family>[a-z0-9]+-[a-z]+)-(?P<cpus>\d+)")
_AZURE_SIZE = re.compile(r"Standard_(?P<letter>[A-Z]+)(?P<cpus>\d+)(?P<rest>[a-z]*(?:_v\d)?)")


def find_list_price(instance_type: str) -> float | None:
    """Dollars per hour on demand, or None for a type this table does not know."""
    exact = _AWS_EXACT.get(instance_type)
    if exact is not None:
        return exact
    if match := _AWS_SIZE.fullmatch(instance_type):
        return _multiply(_AWS_LARGE.get(match["family"]), _count_larges(match))
    if match := _GCP_SIZE.fullmatch(instance_type):
        return _multiply(_GCP_PER_CPU.get(match["family"]), int(match["cpus"]))
    if match := _AZURE_SIZE.fullmatch(instance_type):
        return _multiply(_AZURE_PER_CPU.get(match["letter"] + match["rest"]), int(match["cpus"]))
    return None


def _count_larges(match: re.Match[str]) -> float:
    """How many .large it is."""
    if match["x"]:
        return 2.0 * int(match["times"] or 1)
    return 1.0 if match["small"] == "large" else 0.5


def _multiply(price: float | None, size: float) -> float | None:
    return None if price is None else price * size
