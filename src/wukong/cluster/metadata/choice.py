"""Which cloud a machine is in, and who asks its metadata server."""

from __future__ import annotations

import re

from wukong.cluster.metadata.alibaba import ENDPOINT as ALIBABA_ENDPOINT
from wukong.cluster.metadata.alibaba import Alibaba
from wukong.cluster.metadata.aws import ENDPOINT as AWS_ENDPOINT
from wukong.cluster.metadata.aws import Aws
from wukong.cluster.metadata.azure import ENDPOINT as AZURE_ENDPOINT
from wukong.cluster.metadata.azure import Azure
from wukong.cluster.metadata.cloud import Cloud, Now
from wukong.cluster.metadata.gcp import ENDPOINT as GCP_ENDPOINT
from wukong.cluster.metadata.gcp import Gcp

CLOUDS = ("aws", "gcp", "azure", "alibaba")
_SCHEMES = {"aws": "aws", "gce": "gcp", "azure": "azure", "alicloud": "alibaba"}
_ALIBABA_ID = re.compile(r"[a-z]{2}-[a-z0-9-]+\.i-[a-z0-9]+", re.ASCII)  # without a scheme: cn-hangzhou.i-bp1…


def recognize_cloud(provider_id: str) -> str:
    """By a Node's spec.providerID, which the cloud's own controller writes; "" if it is none of ours."""
    scheme, separator, _ = provider_id.partition("://")
    if separator:
        return _SCHEMES.get(scheme, "")
    return "alibaba" if _ALIBABA_ID.fullmatch(provider_id) else ""


def build_cloud(name: str, now: Now, endpoint: str = "", machine: str = "") -> Cloud:
    """`endpoint` is another than the cloud's own; `machine` the name that Azure's events call this machine by."""
    endpoint = endpoint.rstrip("/")
    match name:
        case "aws":
            return Aws(endpoint or AWS_ENDPOINT)
        case "gcp":
            return Gcp(now, endpoint or GCP_ENDPOINT)
        case "azure":
            return Azure(now, endpoint or AZURE_ENDPOINT, machine)
        case "alibaba":
            return Alibaba(endpoint or ALIBABA_ENDPOINT)
    raise AssertionError(f"{name}: no cloud of ours")
