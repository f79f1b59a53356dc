"""Kubernetes in one process, on virtual time.

`store` has the semantics of its API server, `actors` its built-in controllers and kubelets, `world` plays both.
"""
