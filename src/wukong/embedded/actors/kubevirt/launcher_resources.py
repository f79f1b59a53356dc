"""What the container `compute` of a virt-launcher pod asks for. Called by launcher_pod.py; pure.

Follows pkg/virt-controller/services/renderresources.go of KubeVirt 1.7: cpu is a tenth of the vCPUs unless the domain
requests its own, memory is the guest's plus an overhead, and devices are those of the device plugins of virt-handler.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.quantity import NANO, parse_quantity
from wukong.embedded.store.documents import value_at
from wukong.ports import Document

KVM, TUN, VHOST_NET = "devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net"
_MI = 1024**2
_FIXED_OVERHEAD = (25 + 100 + 25 + 40 + 30) * _MI  # launcher monitor, launcher, virtlogd, virtqemud, qemu
_ALLOCATION_RATIO = 10  # vCPUs for each cpu that is requested
_EPHEMERAL_STORAGE = 50_000_000
_UNITS = (("Ei", 6), ("Pi", 5), ("Ti", 4), ("Gi", 3), ("Mi", 2), ("Ki", 1))
_DECIMAL_UNITS = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3))


def count_vcpus(domain: Document) -> int:
    cpu = domain.get("cpu") or {}
    parts = [cpu.get(name) or 0 for name in ("cores", "sockets", "threads")]
    if not any(parts):
        resources = domain.get("resources") or {}
        amount = (resources.get("limits") or {}).get("cpu") or (resources.get("requests") or {}).get("cpu")
        return max(1, -(-parse_quantity(amount) // NANO)) if amount is not None else 1
    cores, sockets, threads = (part or 1 for part in parts)
    return int(cores * sockets * threads)


def guest_memory_of(domain: Document) -> str | int:
    """The memory of the guest as the domain words it; 0 if it says nothing."""
    memory, resources = domain.get("memory") or {}, domain.get("resources") or {}
    candidates = (
        memory.get("guest"),
        (resources.get("requests") or {}).get("memory"),
        (resources.get("limits") or {}).get("memory"),
        (memory.get("hugepages") or {}).get("pageSize"),
    )
    return next((amount for amount in candidates if amount), 0)


def count_guest_bytes(domain: Document) -> int:
    return parse_quantity(guest_memory_of(domain)) // NANO


def memory_overhead(instance: Document) -> int:
    """Bytes that KubeVirt adds to the guest's memory (GetMemoryOverhead), from the spec of an instance."""
    domain = instance.get("domain") or {}
    devices = domain.get("devices") or {}
    # Page tables are counted for what the domain requests, not for the guest's memory: mostly it requests nothing.
    requested = parse_quantity(value_at(domain, "resources.requests.memory") or 0) // NANO
    overhead = -(-requested // 1000) * 1000 // 512
    overhead += _FIXED_OVERHEAD + 8 * _MI * count_vcpus(domain) + 8 * _MI
    overhead += 0 if devices.get("autoattachGraphicsDevice") is False else 32 * _MI
    overhead += 128 * _MI if instance.get("architecture") == "arm64" else 0
    overhead += 1024 * _MI if devices.get("hostDevices") or devices.get("gpus") else 0
    overhead += 53 * _MI if (devices.get("tpm") or {}).get("enabled", "tpm" in devices) else 0
    overhead += 100 * _MI if is_cpu_dedicated(domain) or _wants_guaranteed(domain) else 0
    return overhead


def is_cpu_dedicated(domain: Document) -> bool:
    return bool((domain.get("cpu") or {}).get("dedicatedCpuPlacement"))


def build_resources(instance: Document, *, emulates: bool = False) -> Document:
    """Requests and limits of the container `compute`. `emulates`: the cluster runs guests without kvm."""
    domain = instance.get("domain") or {}
    resources = domain.get("resources") or {}
    requests: Document = {"cpu": _format_cpu(count_vcpus(domain)), **(resources.get("requests") or {})}
    limits: Document = {**(resources.get("limits") or {})}
    if "cpu" in limits and "cpu" not in (resources.get("requests") or {}):
        requests["cpu"] = limits["cpu"]
    if is_cpu_dedicated(domain):
        requests["cpu"] = limits["cpu"] = str(count_vcpus(domain))
    _add_memory(instance, requests, limits)
    storage = parse_quantity(requests.get("ephemeral-storage") or 0) // NANO + _EPHEMERAL_STORAGE
    requests["ephemeral-storage"] = format_bytes(storage, requests.get("ephemeral-storage") or "M")
    for name, number in _count_devices(instance, emulates=emulates).items():
        requests[name] = limits[name] = str(number)
    return {"requests": requests, **({"limits": limits} if limits else {})}


def _add_memory(instance: Document, requests: Document, limits: Document) -> None:
    domain = instance.get("domain") or {}
    guest = requests.get("memory") or limits.get("memory") or guest_memory_of(domain)
    overhead, bytes_ = memory_overhead(instance), parse_quantity(guest) // NANO
    page_size = value_at(domain, "memory.hugepages.pageSize")
    if page_size:
        requests[f"hugepages-{page_size}"] = limits[f"hugepages-{page_size}"] = format_bytes(bytes_, guest)
        requests["memory"] = format_bytes(overhead, "Mi")
    else:
        requests["memory"] = format_bytes(bytes_ + overhead, guest)
    if "memory" in limits:
        limits["memory"] = format_bytes(parse_quantity(limits["memory"]) // NANO + overhead, limits["memory"])
    if is_cpu_dedicated(domain):
        limits["memory"] = requests["memory"]


def _count_devices(instance: Document, *, emulates: bool) -> dict[str, int]:
    devices = (instance.get("domain") or {}).get("devices") or {}
    interfaces = devices.get("interfaces") or []
    has_network = bool(interfaces) or devices.get("autoattachPodInterface") is not False
    counts: dict[str, int] = {TUN: 1} if has_network else {}
    if not emulates:
        counts[KVM] = 1
        models = [interface.get("model") or "virtio" for interface in interfaces]
        if "virtio" in models:
            counts[VHOST_NET] = 1
    for device in (*(devices.get("gpus") or ()), *(devices.get("hostDevices") or ())):
        if name := device.get("deviceName"):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _wants_guaranteed(domain: Document) -> bool:
    """Whether the domain's limits are its requests, for cpu and memory: its pod is to be Guaranteed."""
    resources = domain.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return all(_are_equal(requests.get(name), limits.get(name)) for name in ("cpu", "memory"))


def _are_equal(request: str | None, limit: str | None) -> bool:
    return request is not None and limit is not None and parse_quantity(request) == parse_quantity(limit)


def _format_cpu(vcpus: int) -> str:
    whole, rest = divmod(vcpus, _ALLOCATION_RATIO)
    return str(whole) if not rest else f"{vcpus * 1000 // _ALLOCATION_RATIO}m"


def format_bytes(amount: int, like: str | int) -> str:
    """A number of bytes in the largest unit of which it is a multiple: binary units, or decimal ones, as `like` has."""
    is_binary = isinstance(like, str) and like.endswith("i")
    for unit, exponent in _UNITS if is_binary else _DECIMAL_UNITS:
        size = 1024**exponent if is_binary else 10**exponent
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)


def list_claims(instance: Document) -> Iterable[tuple[Document, str]]:
    """The volumes of an instance that are claims or data volumes, and the names of their claims."""
    for volume in instance.get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or (volume.get("dataVolume") or {}).get(
            "name"
        )
        if name:
            yield volume, name
