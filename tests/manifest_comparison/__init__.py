"""Manifests and patches sent to a real API server and to the embedded store: the same stored, the same refused.

    pod_fields.py     fragments of pod specs, each valid in two forms: together they set every field there is
    refusals.py       fragments that a server refuses
    objects.py        objects of every workload kind made of fragments, by hand or by seed
    changes.py        what is done to an object: patches of each type, and `kubectl apply`
    kubectl_apply.py  the patch that `kubectl apply` computes
    comparison.py     both servers, and what differs
    __main__.py       `make compare-manifests`: the whole table

tests/live/test_manifests_against_kube.py plays a sample.
"""
