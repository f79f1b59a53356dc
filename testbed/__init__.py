"""The test bed: a real Kubernetes control plane on loopback, with hollow kubelets. For tests, benches and people.

    build.py, programs.py             the programs: built once from Go modules, or ready-made (KUBEBUILDER_ASSETS)
    components.py, certificates.py    flags, keys and kubeconfig files: plain data
    processes.py, control_plane.py    the processes of one control plane
    behaviour.py, pod_status.py       what hollow kubelets do, as tables
    nodes.py, leases.py, kubelet.py   hollow Nodes and the kubelets that keep them
    exporter.py, prometheus.py        what hollow Nodes use, and a real Prometheus that asks
    kubevirt/                         KubeVirt beside a control plane, with hollow virt-handlers
    supervisor.py, __main__.py        `python -m testbed up` and `down`
    pytest_plugin.py                  fixtures: `bed`, `namespace`, `hollow_nodes`, `own_bed`, `own_control_plane`, and
                                      `kubevirt_bed`, `vm_namespace`, `vm_nodes`

It imports nothing of `wukong`: what is under test is not what the test stands on.
"""
