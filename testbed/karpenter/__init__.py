"""The real Karpenter beside a test bed. Its kwok provider makes Nodes in the API, which hollow kubelets run.

    with running(bed.kubeconfig, folder, say): ...      # CustomResourceDefinitions, a KWOKNodeClass, and the program

Built on demand by whoever asks, in about four minutes; no test needs it. `make compare-nodes` stands on it.
"""
