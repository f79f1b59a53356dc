"""The webhooks as a component: asked by API servers over HTTPS, or by the store of an embedded cluster directly."""

from __future__ import annotations

import os
import secrets

from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    NAMESPACES,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SECRETS,
)
from wukong.api.quota import ResourceQuota
from wukong.app.component import Component, Context, Mutator, Server
from wukong.app.components.admission.install import build_manifests
from wukong.app.components.admission.options import (
    AdmissionOptions,
    configuration_of,
    files_of,
    find_problems,
    secret_of,
    service_of,
)
from wukong.app.components.load import LOAD
from wukong.app.components.wukongs import WUKONG_SETTINGS
from wukong.app.install.installation import labels_of
from wukong.app.own_pod import find_own_pod
from wukong.app.permissions import Permission
from wukong.controllers.admission.controller import LeaderLabel
from wukong.placement.vm import VmSettings
from wukong.replies.admission.own_kinds import KindAdmission
from wukong.replies.admission.pods import AdmissionSettings, PodAdmission
from wukong.state.controller import Watch

NAME = "admission"
READS = (NODES, PODS, NAMESPACES, PRIORITY_CLASSES, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)
# The table of kinds does not have quotas, nor does an embedded cluster.
WATCHES = (*(Watch(resource) for resource in READS), Watch(RESOURCE_QUOTAS, read=ResourceQuota, optional=True))
KUBE_SYSTEM = "kube-system"
REGISTRATION = "admissionregistration.k8s.io"
NONCE_BYTES = 8


def permissions_of(options: AdmissionOptions) -> tuple[Permission, ...]:
    """Its own certificates, and the label on its own pods, besides what it decides by."""
    reading = [Permission(watch.resource.group, watch.resource.plural, ("list", "watch")) for watch in WATCHES]
    label = Permission("", PODS.plural, ("patch",), in_own_namespace=True)
    if files_of(options) is not None:
        return (*reading, label)
    service = service_of(options)
    secret, configuration = (secret_of(service).name,), (configuration_of(service),)
    return (
        *reading,
        label,
        Permission("", SECRETS.plural, ("create",), in_own_namespace=True),
        Permission("", SECRETS.plural, ("get", "patch"), in_own_namespace=True, names=secret),
        Permission(REGISTRATION, "mutatingwebhookconfigurations", ("get", "patch"), names=configuration),
        Permission(REGISTRATION, "validatingwebhookconfigurations", ("get", "patch"), names=configuration),
    )


def build_controllers(options: AdmissionOptions, context: Context) -> tuple[LeaderLabel, ...]:
    """Outside of a pod there is nothing to be labelled."""
    own_pod = find_own_pod(os.environ)
    return () if own_pod is None else (LeaderLabel(own_pod, labels_of(NAME)),)


def build_servers(options: AdmissionOptions, context: Context) -> tuple[Server, ...]:
    from wukong.app.components.admission.server import AdmissionServer, Reviewers  # brings aiohttp

    pods = PodAdmission(
        context.state, lambda: secrets.token_hex(NONCE_BYTES), settings_of(options), rules=context.rules
    )
    labels = context.options_of(LOAD)
    vm_settings = VmSettings(
        resource_affinity=context.options_of(WUKONG_SETTINGS).resource_affinity,
        usage_prefix=labels.label_prefix,
        free_prefix=labels.free_label_prefix,
    )
    return (AdmissionServer(Reviewers(pods, KindAdmission(context.rules, vm_settings)), options, context),)


def build_mutators(options: AdmissionOptions, context: Context) -> tuple[Mutator, ...]:
    from wukong.app.components.admission.embedded import EmbeddedAdmission  # brings the embedded cluster

    return (EmbeddedAdmission(context, settings_of(options)),)


def settings_of(options: AdmissionOptions) -> AdmissionSettings:
    return AdmissionSettings(left_alone=frozenset({KUBE_SYSTEM, service_of(options).namespace}))


ADMISSION = Component(
    name=NAME,
    help=(
        "answers API servers about new pods: adds what their PlacementPolicy says, for any scheduler to obey, and "
        "keeps shares of spot; and refuses policies and Wukongs that cannot be understood. Needs the kinds: wukong "
        "manifests crds."
    ),
    options=AdmissionOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    watches=WATCHES,
    build_controllers=build_controllers,
    build_servers=build_servers,
    build_mutators=build_mutators,
    build_manifests=build_manifests,
    needs=(WUKONG_SETTINGS,),
)
