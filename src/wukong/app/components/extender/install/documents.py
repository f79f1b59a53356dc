"""Everything that `wukong manifests extender` prints, as objects for `kubectl apply -f -`."""

from __future__ import annotations

from wukong.app.components.extender.install import extender, scheduler
from wukong.app.components.extender.install.settings import ExtenderInstallation
from wukong.app.install.certificates import Certificates
from wukong.ports import Document


def build_manifests(installation: ExtenderInstallation, certificates: Certificates | None) -> list[Document]:
    """The extender, and a second scheduler or the configuration for the one there is. No certificates: plain HTTP."""
    documents = extender.documents(installation, certificates)
    if installation.second:
        return [*documents, *scheduler.documents(installation, installation.second, certificates)]
    return [*documents, scheduler.stored_configuration(installation, certificates)]
