"""Everything that `wukong manifests extender` prints, as objects for `kubectl apply -f -`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wukong.app.components.extender.install import extender, scheduler
from wukong.app.components.extender.install.settings import ExtenderInstallation
from wukong.ports import Document

if TYPE_CHECKING:
    from wukong.app.install.certificates import Certificates  # brings cryptography


def build_manifests(installation: ExtenderInstallation, certificates: Certificates | None) -> list[Document]:
    """The extender, and a second scheduler or the configuration for the one there is. No certificates: plain HTTP."""
    documents = extender.build_documents(installation, certificates)
    if installation.second:
        return [*documents, *scheduler.build_documents(installation, installation.second, certificates)]
    return [*documents, scheduler.store_configuration(installation, certificates)]
