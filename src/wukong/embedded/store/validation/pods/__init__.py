"""What the API server refuses in pods and pod templates, as documents in their stored form.

    problems.py     how a problem is worded
    syntax.py       names, label keys, addresses, paths
    spec.py         a pod's spec and a template as a whole
    containers.py   containers of all sorts     handlers.py   probes and lifecycle hooks     security.py
    volumes.py      resources.py     scheduling.py (affinity, spread, tolerations)

Paths and reasons are those of a real server, which tests/manifest_comparison asks; not every rule of it is here.
"""
