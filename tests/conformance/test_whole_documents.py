"""A mirror that keeps documents holds what the server lists, on every Cluster."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from conformance_helpers import SECONDS, a_deployment, merging
from wukong.api.apps import Deployment
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.app.mirror_documents import follow_whole
from wukong.embedded.world import objects
from wukong.ports import Cluster, Document, Event, Listing, Selection


async def test_objects_that_are_followed_whole_hold_the_documents_of_the_server(
    cluster: Cluster, namespace: str
) -> None:
    await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    selection = Selection(namespace)
    key, shown = Key(namespace, "web"), list[Document]()
    async with asyncio.timeout(SECONDS), aclosing(follow_whole(cluster, DEPLOYMENTS, Deployment, selection)) as stream:
        async for update in stream:
            if isinstance(update, Listing):
                shown += [document_of(subject) for subject in update.items]
                await cluster.patch(DEPLOYMENTS, key, merging(metadata={"labels": {"team": "shop"}}))
            elif isinstance(update, Event) and update.object.metadata.labels.get("team") == "shop":
                shown.append(document_of(update.object))
                break
    stored = await cluster.get(DEPLOYMENTS, key, dict)
    assert [document["metadata"]["uid"] for document in shown] == [stored["metadata"]["uid"]] * 2
    assert [document["spec"] for document in shown] == [stored["spec"]] * 2
    assert shown[1]["metadata"]["labels"] == {"team": "shop"}


def document_of(subject: Object) -> Document:
    assert isinstance(subject, objects.Deployment)
    return subject.document
