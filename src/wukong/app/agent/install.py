"""The agent in a cluster, as plain documents: DaemonSet, account and rights, and the policy that bounds them.

Called by `wukong manifests agent` for the documents in the order in which they are to be applied. RBAC knows no "own
Node": whoever may patch one may patch all. So a ValidatingAdmissionPolicy lets the account change nothing but the
annotation of notices, and of no Node but the one that its token is bound to.
"""

from __future__ import annotations

from wukong.api.kinds import NODES
from wukong.app.install import rbac, workload
from wukong.app.install.installation import (
    Installation,
    build_meta,
    find_memory_problems,
    find_namespace_problems,
    labels_of,
)
from wukong.app.permissions import Permission
from wukong.errors import InputError
from wukong.placement.capacity import SPOT_LABELS
from wukong.placement.leaving_nodes import NOTICE
from wukong.ports import Document

COMPONENT = "agent"
NAME = "wukong-agent"
NAMESPACE = "wukong-agent"  # of its own: with --host-network it cannot be in one with the level "restricted"
PRIORITY_CLASS = "system-node-critical"
NODE_NAME_CLAIM = "authentication.kubernetes.io/node-name"
PERMISSIONS = (Permission(NODES.group, NODES.plural, ("get", "patch")),)
_GROUP = "admissionregistration.k8s.io/v1"
_END_SECONDS = 5


class AgentInstallation(Installation, frozen=True, kw_only=True):
    namespace: str = NAMESPACE
    memory: str = "40Mi"
    memory_limit: str = "64Mi"
    has_host_network: bool = False
    is_for_spot_nodes: bool = False  # by the labels that are known; else it is on every node
    options: tuple[str, ...] = ()  # of `wukong agent`, one word each


def check_installation(installation: AgentInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*find_namespace_problems(installation), *find_memory_problems(installation)]
    if installation.has_host_network and installation.namespace == "wukong-system":
        problems.append(
            "--namespace: expected one of the agent's own with --host-network, got 'wukong-system', whose level of Pod "
            f"Security forbids it. Try {NAMESPACE}."
        )
    if problems:
        raise InputError(*problems)


def build_manifests(installation: AgentInstallation) -> list[Document]:
    """Everything that is to be applied. The policy comes before the rights that it bounds."""
    return [
        build_namespace(installation),
        build_quota(installation),
        build_policy(installation),
        build_policy_binding(installation),
        rbac.build_account(installation, NAME, COMPONENT),
        *rbac.build_roles(installation, NAME, COMPONENT, PERMISSIONS),
        workload.build_network_policy(installation, NAME, COMPONENT, []),
        build_daemon_set(installation),
    ]


def build_namespace(installation: AgentInstallation) -> Document:
    """Pod Security "restricted"; a host's network is allowed by none but "privileged"."""
    namespace = workload.build_namespace(installation)
    if installation.has_host_network:
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    return namespace


def build_quota(installation: AgentInstallation) -> Document:
    """Leave to use the priority class: some clusters (GKE) refuse it wherever no quota names it. It limits nothing."""
    chosen = {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY_CLASS]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": build_meta(installation, "wukong-node-critical-pods", "quota"),
        "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [chosen]}},
    }


def build_policy(installation: AgentInstallation) -> Document:
    """What the account may change of Nodes. The API server decides it by the token's own claim, so nobody can lie."""
    user = f"system:serviceaccount:{installation.namespace}:{NAME}"
    own_node = "variables.tokenNode != '' && variables.tokenNode == object.metadata.name"
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": build_meta(installation, _policy_name(installation), COMPONENT, is_namespaced=False),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [NODES.group],
                        "apiVersions": [NODES.version],
                        "resources": [NODES.plural, f"{NODES.plural}/*"],
                        "operations": ["*"],
                    }
                ]
            },
            "matchConditions": [{"name": "agent", "expression": f"request.userInfo.username == '{user}'"}],
            "variables": [
                {
                    "name": "tokenNode",
                    "expression": f"request.userInfo.?extra['{NODE_NAME_CLAIM}'][?0].orValue('')",
                },
                {
                    "name": "isUpdate",
                    "expression": "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''",
                },
                {"name": "before", "expression": _annotations_of("oldObject")},
                {"name": "after", "expression": _annotations_of("object")},
            ],
            "validations": [
                {"expression": "variables.isUpdate", "message": "the agent may annotate its Node, nothing else"},
                {
                    "expression": f"!variables.isUpdate || ({own_node})",
                    "message": "the agent may change no Node but the one that it runs on",
                },
                {
                    "expression": f"!variables.isUpdate || ({_UNCHANGED})",
                    "message": f"the agent may change nothing but the annotation {NOTICE}",
                },
            ],
        },
    }


def _annotations_of(subject: str) -> str:
    return f"has({subject}.metadata.annotations) ? {subject}.metadata.annotations : {{}}"


def _is_same(field: str) -> str:
    """Whether a field of the metadata is as it was, or absent as it was."""
    before, after = f"oldObject.metadata.{field}", f"object.metadata.{field}"
    return f"has({before}) == has({after}) && (!has({after}) || {before} == {after})"


# Names, uid and status no patch of a Node can change; versions and managed fields change by themselves.
_UNCHANGED = " && ".join(
    [
        "object.spec == oldObject.spec",
        *(f"({_is_same(field)})" for field in ("labels", "finalizers", "ownerReferences")),
        f"variables.after.all(key, key == '{NOTICE}' || (key in variables.before && "
        "variables.before[key] == variables.after[key]))",
        f"variables.before.all(key, key == '{NOTICE}' || key in variables.after)",
    ]
)


def build_policy_binding(installation: AgentInstallation) -> Document:
    name = _policy_name(installation)
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": build_meta(installation, name, COMPONENT, is_namespaced=False),
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _policy_name(installation: AgentInstallation) -> str:
    """It carries the namespace: two installations do not take each other's."""
    return f"{NAME}.{installation.namespace}"


def build_daemon_set(installation: AgentInstallation) -> Document:
    affinity = {"affinity": {"nodeAffinity": choose_spot_nodes()}} if installation.is_for_spot_nodes else {}
    # With the host's network names are the cluster's all the same.
    network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if installation.has_host_network else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": build_meta(installation, NAME, COMPONENT),
        "spec": {
            "selector": {"matchLabels": labels_of(COMPONENT)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels_of(COMPONENT)},
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": PRIORITY_CLASS,
                    "securityContext": workload.build_pod_security(),
                    **affinity,
                    **network,
                    # On every node, also on one that is about to go: only there is its end told.
                    "tolerations": [{"operator": "Exists"}],
                    "terminationGracePeriodSeconds": _END_SECONDS,
                    "containers": [build_container(installation)],
                },
            },
        },
    }


def build_container(installation: AgentInstallation) -> Document:
    node_name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return {
        "name": "wukong",
        "image": installation.image,
        "args": ["agent", "--log-format=json", *installation.options],
        "env": [node_name],
        "resources": workload.build_resources("10m", installation.memory, installation.memory_limit),
        "securityContext": workload.build_container_security(),
    }


def choose_spot_nodes() -> Document:
    """A term for each label by which a spot node is known: one of them must hold."""
    terms = [
        {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}
        for label, values in sorted(SPOT_LABELS.items())
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
