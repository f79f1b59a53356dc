"""`wukong manifests extender`: the scheduler extender and what makes a scheduler ask it, to apply or to put in place.

It talks to no cluster. Keys are made anew each time it runs; what is printed is the component's own.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack, get_args

import click

from wukong.app.components.extender.install import (
    ExtenderInstallation,
    SecondScheduler,
    build_manifests,
    check_installation,
    extender,
    scheduler,
)
from wukong.app.components.extender.install.settings import EXTENDER
from wukong.app.components.wukongs import WukongOptions
from wukong.app.install.certificates import Certificates, issue
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation
from wukong.cli.views.console import note
from wukong.cluster.redaction import redact_urls
from wukong.errors import InputError
from wukong.placement.vm.settings import ResourceAffinityMode

EXTENDER_FILE = "10-extender.yaml"
SECOND_FILE = "20-second-scheduler.yaml"
STANDARD = SecondScheduler(image="")


@click.command("extender")
@installation_options("extender,policy", None)
@click.option(
    "--weight", type=click.IntRange(1, 100_000), default=5, show_default=True, help="Of the extender's score."
)
@click.option("--prometheus", default="", metavar="URL", help="Where usage comes from.  [default: metrics.k8s.io]")
@click.option(
    "--critical-priority",
    type=click.IntRange(-(2**31), 2**31 - 1),
    metavar="N",
    help="Pods of this priority or more are critical.",
)
@click.option(
    "--resource-affinity",
    type=click.Choice(get_args(ResourceAffinityMode)),
    default=WukongOptions().resource_affinity,
    show_default=True,
    help="Who obeys resourceAffinity of Wukongs; as `wukong manifests vm` is told.",
)
@click.option("--plain-http", is_flag=True, help="No TLS, on port 8080: for trying it.")
@click.option(
    "--cert-days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long keys are good."
)
@click.option("--cluster-ip", default="", metavar="IP", help="A fixed address of the Service, from the Service range.")
@click.option("--address", default="", metavar="HOST:PORT", help="Where the scheduler finds it, if not by the Service.")
@click.option("--scheduler-kubeconfig", metavar="FILE", help="Of the control plane's scheduler.  [default: kubeadm's]")
@click.option("--second-scheduler", is_flag=True, help="Add a stock kube-scheduler: for managed control planes.")
@click.option("--scheduler-name", metavar="NAME", help="The schedulerName it serves.  [default: wukong]")
@click.option("--scheduler-image", metavar="IMAGE", help="Of kube-scheduler, in the cluster's minor version.")
@click.option("--out", metavar="DIR", help="Write separate files there.  [default: one stream on stdout]")
@click.option("--force", is_flag=True, help="Replace the files of an earlier run.")
def command(
    weight: int,
    prometheus: str,
    critical_priority: int | None,
    resource_affinity: ResourceAffinityMode,
    plain_http: bool,
    cert_days: int,
    cluster_ip: str,
    address: str,
    scheduler_kubeconfig: str | None,
    second_scheduler: bool,
    scheduler_name: str | None,
    scheduler_image: str | None,
    out: str | None,
    force: bool,
    **given: Unpack[InstallationInput],
) -> None:
    """Print the scheduler extender: workload, rights, certificates.

    Two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; a Service; rights of their
    own; certificates for mutual TLS; and the KubeSchedulerConfiguration that makes kube-scheduler ask them.

    A control plane of your own gets that configuration as a file: give --cluster-ip, for its scheduler runs on the
    host's network and cannot resolve names of Services. Managed control planes take none: with --second-scheduler a
    stock kube-scheduler runs beside theirs, for the pods that name it. The output holds private keys.

    \b
    Example:
      wukong manifests extender --image wukong:0.1.0 --cluster-ip 10.96.0.50 --out extender
      wukong manifests extender --image wukong:0.1.0 --second-scheduler --scheduler-image kube-scheduler:v1.35.8 \\
        | kubectl apply -f -
    """
    kubeconfig = {"scheduler_kubeconfig": scheduler_kubeconfig} if scheduler_kubeconfig else {}
    installation = ExtenderInstallation(
        **read_installation(given),
        is_plain=plain_http,
        weight=weight,
        prometheus=prometheus,
        critical_priority=critical_priority,
        resource_affinity=resource_affinity,
        cluster_ip=cluster_ip,
        address=address,
        second=read_second_scheduler(second_scheduler, scheduler_name or "", scheduler_image or ""),
        **kubeconfig,
    )
    check_installation(installation)
    is_plain, now = installation.is_plain, datetime.now(UTC)
    certificates = None if is_plain else issue(EXTENDER, installation.hosts, now, cert_days)
    if out is None:
        refuse_force(force)
        click.echo(as_yaml(build_manifests(installation, certificates)), nl=False)
    else:
        files = build_files(installation, certificates)
        write_files(Path(out), files, replace=force)
        note(f"wrote {', '.join(files)} to {out}.")
    say_what_to_know(installation, certificates)


def read_second_scheduler(is_wanted: bool, name: str, image: str) -> SecondScheduler | None:
    if is_wanted and not image:
        expected = "expected the kube-scheduler image of the cluster's minor version, such as kube-scheduler:v1.35.8"
        raise InputError(f"--scheduler-image: {expected}, got none. Name it as your nodes pull it.")
    if not is_wanted:
        for option, value in (("--scheduler-name", name), ("--scheduler-image", image)):
            if value:
                raise InputError(
                    f"{option}: is about the second scheduler, got {value!r} without one. Add --second-scheduler."
                )
        return None
    return SecondScheduler(image=image, name=name or STANDARD.name)


def refuse_force(force: bool) -> None:
    if force:
        raise InputError("--force: replaces files, and none are written. Add --out DIR.")


def build_files(installation: ExtenderInstallation, certificates: Certificates | None) -> dict[str, str]:
    """What to apply, and what to give to the control plane's scheduler; name → text."""
    files = {EXTENDER_FILE: as_yaml(extender.build_documents(installation, certificates))}
    if installation.second:
        return {
            **files,
            SECOND_FILE: as_yaml(scheduler.build_documents(installation, installation.second, certificates)),
        }
    text = scheduler.format_configuration(scheduler.build_configuration(installation, certificates))
    return {**files, scheduler.CONFIG_FILE: text}


def write_files(folder: Path, contents: dict[str, str], *, replace: bool) -> None:
    """All of them or none: each is written beside its place, readable by us alone, and then all are moved there."""
    unfinished: dict[Path, Path] = {}
    refuse_places_taken([folder / name for name in contents], replace=replace)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
                unfinished[Path(file.name)] = folder / name
                file.write(content.encode())
        for path, place in unfinished.items():
            os.replace(path, place)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be written: {error.strerror or error}.") from None
    finally:
        for path in unfinished:
            path.unlink(missing_ok=True)


def refuse_places_taken(paths: list[Path], *, replace: bool) -> None:
    """Before anything is written: one file of an earlier run beside one of this has keys that do not fit."""
    odd = [path for path in paths if path.exists() and not path.is_file()]
    problems = [f"{path}: expected a file or none, found something else. Move it away." for path in odd]
    if not replace:
        problems += [f"{path}: is there already. Replace it with --force." for path in paths if path.is_file()]
    if problems:
        raise InputError(*problems)


def say_what_to_know(installation: ExtenderInstallation, certificates: Certificates | None) -> None:
    if certificates is None:
        note("plain HTTP: whoever reaches the extender may ask it, and what it answers can be forged on the way.")
    else:
        then = "apply it" if installation.second else "apply it, and give the scheduler its new configuration"
        note(f"the certificates expire on {certificates.expire:%Y-%m-%d}. To renew them run this again and {then}.")
    if redact_urls(installation.prometheus) != installation.prometheus:
        note("--prometheus has a user in it: whoever may read the Deployment can read it there.")
    if installation.second:
        note(f"the second scheduler places the pods that say schedulerName: {installation.second.name}.")
    elif not (installation.cluster_ip or installation.address):
        where = f"the scheduler is told to ask {installation.url}"
        note(f"{where}; one on the host's network (kubeadm) cannot resolve that. Give --cluster-ip or --address.")
