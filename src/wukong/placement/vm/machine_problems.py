"""What is wrong with the machine that a Wukong describes: name, size, disks, networks, devices. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wukong.admission.affinity_validation import find_label_problems
from wukong.admission.problem_text import describe_problem, format_choices
from wukong.api.quantity import parse_quantity
from wukong.api.vm import (
    BUSES,
    DNS_LABEL,
    EVICTION_STRATEGIES,
    LEAST_MEMORY,
    LONGEST_NAME,
    MOST_CPUS,
    MOST_REPLICAS,
    NAME_LABEL,
    RESTART_POLICIES,
    RUN_STRATEGIES,
    Disk,
    Gpu,
    Network,
    Wukong,
    WukongSpec,
)
from wukong.errors import InputError, nearest
from wukong.placement.vm.domain import sources_of
from wukong.semantics.label_syntax import is_label_key

_DNS_LABEL = re.compile(DNS_LABEL)
_LONGEST_CLOUD_INIT = 2048  # bytes; KubeVirt refuses more


def find_machine_problems(wukong: Wukong) -> Iterator[str]:
    spec = wukong.spec
    yield from _find_name_problems(wukong)
    yield from _find_size_problems(spec)
    for field, value, choices in (
        ("runStrategy", spec.run_strategy, RUN_STRATEGIES),
        ("evictionStrategy", spec.eviction_strategy, EVICTION_STRATEGIES),
        ("restartPolicy", spec.restart_policy, RESTART_POLICIES),
    ):
        yield from _find_choice_problems(value, choices, f"$.spec.{field}")
    yield from _find_own_label_problems(spec)
    yield from _find_disk_problems(spec.disks)
    yield from _find_network_problems(spec.networks)
    yield from _find_gpu_problems(spec.gpus)


def is_reserved_label(key: str) -> bool:
    """Whether KubeVirt refuses a label of the template, or it is the one that we set."""
    return key.startswith("kubevirt.io/") or key == NAME_LABEL


def _find_name_problems(wukong: Wukong) -> Iterator[str]:
    longest = LONGEST_NAME if wukong.spec.replicas is None else LONGEST_NAME - len(f"-{MOST_REPLICAS - 1}")
    if len(wukong.metadata.name) > longest:
        expected = f"at most {longest} characters: it is a label and a hostname"
        yield describe_problem("$.metadata.name", expected, wukong.metadata.name, "Shorten it.")


def _find_size_problems(spec: WukongSpec) -> Iterator[str]:
    if not 1 <= spec.cpu <= MOST_CPUS:
        yield describe_problem("$.spec.cpu", f"1 to {MOST_CPUS}", spec.cpu, "Give it a number such as 2.")
    try:
        if parse_quantity(spec.memory) < parse_quantity(LEAST_MEMORY):
            expected = f'a quantity of at least {LEAST_MEMORY}, such as "4Gi"'
            yield describe_problem("$.spec.memory", expected, spec.memory, "Add a unit.")
    except InputError as error:
        yield from error.at("$.spec.memory").problems
    if spec.replicas is not None and not 0 <= spec.replicas <= MOST_REPLICAS:
        yield describe_problem("$.spec.replicas", f"0 to {MOST_REPLICAS:,}", spec.replicas, "Give it such a number.")
    if (spec.termination_grace_period_seconds or 0) < 0:
        path = "$.spec.terminationGracePeriodSeconds"
        yield describe_problem(path, "0 or more", spec.termination_grace_period_seconds, "Raise it, or leave it out.")


def _find_own_label_problems(spec: WukongSpec) -> Iterator[str]:
    yield from find_label_problems(spec.labels, "$.spec.labels")
    if reserved := [key for key in spec.labels if is_reserved_label(key)]:
        yield describe_problem(
            "$.spec.labels",
            f"no label under kubevirt.io/, which KubeVirt refuses, and not {NAME_LABEL}, which is set for you",
            ", ".join(reserved),
            "Remove it.",
        )


def _find_disk_problems(disks: Sequence[Disk]) -> Iterator[str]:
    yield from _find_list_name_problems([disk.name for disk in disks], "$.spec.disks")
    for index, disk in enumerate(disks):
        path = f"$.spec.disks[{index}]"
        sources = [name for source in sources_of(disk) for name in source]
        if len(sources) != 1:
            expected = "exactly one of containerDisk, dataVolume, claim and cloudInit"
            yield describe_problem(path, expected, sources, "Keep one of them.")
        yield from _find_choice_problems(disk.bus, BUSES, f"{path}.bus")
        for field, name in (
            ("containerDisk.image", disk.container_disk and disk.container_disk.image),
            ("dataVolume.name", disk.data_volume and disk.data_volume.name),
            ("claim.claimName", disk.claim and disk.claim.claim_name),
        ):
            if name == "":
                yield describe_problem(f"{path}.{field}", "a name", name, "Name it.")
        if disk.cloud_init is not None:
            data = {"userData": disk.cloud_init.user_data, "networkData": disk.cloud_init.network_data}
            yield from _find_cloud_init_problems(data, f"{path}.cloudInit")


def _find_cloud_init_problems(data: dict[str, str], path: str) -> Iterator[str]:
    if not any(data.values()):
        yield describe_problem(path, "userData, networkData or both", None, "Write one of them.")
    for name, text in data.items():
        if (size := len(text.encode())) > _LONGEST_CLOUD_INIT:
            fix = "Put it into a Secret, and name that in vmTemplate (cloudInitNoCloud.secretRef)."
            yield f"{path}.{name}: expected at most {_LONGEST_CLOUD_INIT} bytes, got {size:,}. {fix}"


def _find_network_problems(networks: Sequence[Network]) -> Iterator[str]:
    yield from _find_list_name_problems([network.name for network in networks], "$.spec.networks")
    pod_networks = [network.name for network in networks if not network.multus]
    if len(pod_networks) > 1:
        expected = "at most one network without multus: there is one pod network"
        yield describe_problem("$.spec.networks", expected, ", ".join(pod_networks), "Name others by multus.")


def _find_gpu_problems(gpus: Sequence[Gpu]) -> Iterator[str]:
    yield from _find_list_name_problems([gpu.name for gpu in gpus], "$.spec.gpus")
    for index, gpu in enumerate(gpus):
        if "/" not in gpu.device_name or not is_label_key(gpu.device_name):
            expected = "the name of an extended resource, such as nvidia.com/A100"
            path = f"$.spec.gpus[{index}].deviceName"
            yield describe_problem(path, expected, gpu.device_name, "Write its full name.")


def _find_list_name_problems(names: Sequence[str], path: str) -> Iterator[str]:
    for index, name in enumerate(names):
        if len(name) > LONGEST_NAME or _DNS_LABEL.fullmatch(name) is None:
            expected = "a name of up to 63 letters in lower case, digits and '-'"
            yield describe_problem(f"{path}[{index}].name", expected, name, "Mend the name.")
        if name in names[:index]:
            yield describe_problem(f"{path}[{index}].name", "a name that no other has", name, "Give it another.")


def _find_choice_problems(value: str, choices: tuple[str, ...], path: str) -> Iterator[str]:
    if value not in choices:
        fix = nearest(value, choices).strip() or "Choose one."
        yield describe_problem(path, format_choices(choices), value, fix)
