"""`wukong lint`: what is wrong with Wukongs, what will fail some day, and what may mean something else. Pure.

    lint_wukongs(wukongs, rules)                    each for itself, and against each other
    lint_wukongs(wukongs, rules, objects=objects)   and against what a cluster holds

Called by the verb; decides nothing. Errors of the fields are those of find_wukong_problems; the traps of placement are
in contradictions.py and domain_counts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wukong.api.core import PodAffinityTerm
from wukong.api.objects import Objects
from wukong.api.vm import VmScheduling, Wukong, vm_names_of
from wukong.placement.compile import GPU
from wukong.placement.rule import Rules
from wukong.placement.vm.affinity import template_labels_of
from wukong.placement.vm.build import build_own_part, is_bootable
from wukong.placement.vm.contradictions import find_contradictions
from wukong.placement.vm.domain_counts import find_domain_findings
from wukong.placement.vm.finding import SEVERITIES, Finding
from wukong.placement.vm.merge import merge_under
from wukong.placement.vm.problems import find_wukong_problems
from wukong.placement.vm.settings import VmSettings
from wukong.ports import Document
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import selects

_DEFAULTS = VmSettings()
_NO_LABELS = VmSettings(resource_affinity="extender")


def lint_wukongs(
    wukongs: Sequence[Wukong], rules: Rules, *, objects: Objects | None = None, settings: VmSettings = _DEFAULTS
) -> list[Finding]:
    """All findings, the worst first, those of one severity in the order of the Wukongs and of their checks."""
    findings = [finding for wukong in wukongs for finding in _lint_one(wukong, wukongs, rules, objects, settings)]
    findings += _find_shared_names(wukongs)
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _lint_one(
    wukong: Wukong, wukongs: Sequence[Wukong], rules: Rules, objects: Objects | None, settings: VmSettings
) -> Iterator[Finding]:
    problems = find_wukong_problems(wukong, rules, settings)
    for problem in problems:
        path, _, text = problem.partition(": ")
        expected, _, fix = text.partition(". ")
        yield Finding("error", wukong.key, path, f"{expected.rstrip('.')}.", fix)
    if problems:
        return  # the rest assumes that it can be read as it is meant
    yield from find_contradictions(wukong)
    yield from find_domain_findings(wukong, None if objects is None else objects.nodes)
    yield from _find_machine_findings(wukong, objects)
    yield from _find_term_findings(wukong, wukongs, objects)
    if settings.resource_affinity == "labels":
        yield from _find_rule_findings(wukong)


# ---- the machine


def _find_machine_findings(wukong: Wukong, objects: Objects | None) -> Iterator[Finding]:
    machine = merge_under(build_own_part(wukong, _NO_LABELS), wukong.spec.vm_template)
    template_spec: Document = machine["spec"]["template"]["spec"]
    devices: Document = template_spec["domain"]["devices"]
    has_device = bool(devices.get("gpus") or devices.get("hostDevices"))
    if not is_bootable(wukong):
        fix = "Add a disk with containerDisk, dataVolume or claim."
        yield Finding("warning", wukong.key, "$.spec.disks", "there is nothing to boot from.", fix)
    yield from _find_gpu_findings(wukong, has_device)
    yield from _find_shared_claims(wukong)
    if wukong.spec.eviction_strategy == "LiveMigrate" and has_device:
        yield _cannot_migrate(wukong, "a machine with a GPU or another device of its host")
    if objects is not None and wukong.spec.eviction_strategy == "LiveMigrate":
        yield from _find_claim_findings(wukong, objects)


def _find_gpu_findings(wukong: Wukong, has_device: bool) -> Iterator[Finding]:
    scheduling = wukong.spec.scheduling
    affinity = scheduling.resource_affinity if scheduling is not None else None
    for index, entry in enumerate(affinity.required_resources if affinity is not None else ()):
        if entry.resource_type == GPU and not has_device:
            yield Finding(
                "warning",
                wukong.key,
                f"$.spec.scheduling.resourceAffinity.requiredResources[{index}]",
                "asks for nodes with a free GPU, but the machine is given none.",
                "Name the device in spec.gpus, such as {name: gpu0, deviceName: nvidia.com/A100}.",
            )


def _find_shared_claims(wukong: Wukong) -> Iterator[Finding]:
    if (wukong.spec.replicas or 1) < 2:
        return
    for index, disk in enumerate(wukong.spec.disks):
        if disk.claim is not None or disk.data_volume is not None:
            yield Finding(
                "warning",
                wukong.key,
                f"$.spec.disks[{index}]",
                f"all {wukong.spec.replicas} machines use the same volume: only one that can be shared will do.",
                "Use containerDisk, or one Wukong per machine.",
            )


def _find_claim_findings(wukong: Wukong, objects: Objects) -> Iterator[Finding]:
    modes = {claim.key: claim.spec.access_modes for claim in objects.persistent_volume_claims}
    for disk in wukong.spec.disks:
        key = f"{wukong.metadata.namespace}/{disk.claim.claim_name}" if disk.claim is not None else ""
        if key in modes and "ReadWriteMany" not in modes[key]:
            yield _cannot_migrate(wukong, f"a machine whose claim {key} is not ReadWriteMany")


def _cannot_migrate(wukong: Wukong, who: str) -> Finding:
    return Finding(
        "warning",
        wukong.key,
        "$.spec.evictionStrategy",
        f"{who} cannot migrate live, and LiveMigrate refuses every other eviction: a drain waits for ever.",
        "Use LiveMigrateIfPossible or None.",
    )


# ---- the rules


def _find_term_findings(wukong: Wukong, wukongs: Sequence[Wukong], objects: Objects | None) -> Iterator[Finding]:
    for path, term in _list_terms(wukong):
        if term.namespaces and term.namespace_selector is not None:
            yield Finding(
                "note",
                wukong.key,
                path,
                "namespaces and namespaceSelector unite: pods of the listed ones count, and of the selected ones.",
                "Leave one of them out if both were to hold at once.",
            )
    yield from _find_missing_separation(wukong)
    scheduling = wukong.spec.scheduling
    if objects is None or scheduling is None or scheduling.pod_affinity is None:
        return
    for index, term in enumerate(scheduling.pod_affinity.required):
        if not _finds_somebody(wukong, term, wukongs, objects):
            yield Finding(
                "warning",
                wukong.key,
                f"$.spec.scheduling.podAffinity.required[{index}]",
                "no pod of this cluster is one that it wants to be near: its machines wait for one.",
                "Compare labels and namespaces with those of the pods, or make the rule preferred.",
            )


def _find_missing_separation(wukong: Wukong) -> Iterator[Finding]:
    """Anti-affinity that was meant for its own machines, which do not carry the label."""
    terms = [(path, term) for path, term in _list_terms(wukong) if ".podAntiAffinity." in path]
    if (wukong.spec.replicas or 1) < 2 or not terms:
        return
    if not any(_selects_own(wukong, term) for _, term in terms):
        yield Finding(
            "warning",
            wukong.key,
            terms[0][0],
            f"keeps none of the {wukong.spec.replicas} machines apart from each other: they do not carry the labels.",
            "Add the labels to spec.labels, if that was meant.",
        )


def _selects_own(wukong: Wukong, term: PodAffinityTerm) -> bool:
    compiled = compile_pod_term(term, wukong.metadata.namespace)
    # Labels of namespaces are not known here: a selector of namespaces may select its own.
    may_be_here = compiled.namespace_selector is not None or wukong.metadata.namespace in compiled.namespaces
    return may_be_here and selects(compiled.selector, template_labels_of(wukong))


def _list_terms(wukong: Wukong) -> Iterator[tuple[str, PodAffinityTerm]]:
    scheduling = wukong.spec.scheduling or VmScheduling()
    for name, rules in (("podAffinity", scheduling.pod_affinity), ("podAntiAffinity", scheduling.pod_anti_affinity)):
        for index, term in enumerate(rules.required if rules is not None else ()):
            yield f"$.spec.scheduling.{name}.required[{index}]", term
        for index, weighted in enumerate(rules.preferred if rules is not None else ()):
            yield f"$.spec.scheduling.{name}.preferred[{index}].podAffinityTerm", weighted.pod_affinity_term


def _finds_somebody(wukong: Wukong, term: PodAffinityTerm, wukongs: Sequence[Wukong], objects: Objects) -> bool:
    """Whether the term selects the machine itself, one of another Wukong, or a pod that is there."""
    compiled = compile_pod_term(term, wukong.metadata.namespace)
    labels_of = {namespace.metadata.name: namespace.metadata.labels for namespace in objects.namespaces}
    candidates = [(pod.metadata.namespace, pod.metadata.labels) for pod in objects.pods if not pod.is_finished]
    candidates += [(other.metadata.namespace, template_labels_of(other)) for other in wukongs]
    return any(compiled.selects(namespace, labels, labels_of.get(namespace, {})) for namespace, labels in candidates)


def _find_rule_findings(wukong: Wukong) -> Iterator[Finding]:
    scheduling = wukong.spec.scheduling
    policy = scheduling.scheduling_policy if scheduling is not None else None
    if policy is not None and policy.rules:
        yield Finding(
            "note",
            wukong.key,
            "$.spec.scheduling.schedulingPolicy.rules",
            "rules are obeyed by the extender and the scheduler of Wukong; kube-scheduler alone does not know them.",
        )


# ---- several Wukongs


def _find_shared_names(wukongs: Sequence[Wukong]) -> Iterator[Finding]:
    makers: dict[str, str] = {}
    for wukong in wukongs:
        for name in vm_names_of(wukong):
            key = f"{wukong.metadata.namespace}/{name}"
            if makers.setdefault(key, wukong.key) != wukong.key:
                yield Finding(
                    "error",
                    wukong.key,
                    "$.metadata.name",
                    f"{makers[key]} makes a VirtualMachine {key} too: the second is never made.",
                    "Give one of the two another name.",
                )
                break
