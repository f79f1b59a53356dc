"""Kubernetes in one process, on virtual time. So far: `store`, the semantics of its API server."""
