"""An API server on the loopback that lists what it is given, and forbids what a test says: for verbs on a context."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from cli.manifests import Manifest
from wukong.api.kinds import KINDS


@contextmanager
def serve(
    folder: Path, objects: Sequence[Manifest], *, forbidden: Collection[str] = (), namespace: str = ""
) -> Iterator[Path]:
    """Yield a kubeconfig whose context has this namespace. `forbidden` are plurals."""
    lists: dict[str, list[Manifest]] = defaultdict(list)
    for entry in objects:
        kind = KINDS.of_document(entry["kind"], entry["apiVersion"])
        assert kind is not None
        lists[kind.resource.plural].append(entry)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            plural = path[-1]
            if path == ["version"]:
                self._answer(200, {"major": "1", "minor": "35", "gitVersion": "v1.35.8"})
            elif plural in forbidden:
                message = f'{plural} is forbidden: User "ann" cannot list resource "{plural}" at the cluster scope'
                self._answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message})
            else:
                self._answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": lists[plural]})

        def _answer(self, code: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{server.server_port}", namespace)
    finally:
        server.shutdown()
        server.server_close()


def write_kubeconfig(path: Path, server: str, namespace: str) -> Path:
    context = {"cluster": "test", "user": "ann", **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "ann", "user": {"token": "a-token"}}],
        "contexts": [{"name": "test", "context": context}],
    }
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path
