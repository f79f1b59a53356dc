"""Wukongs on a real control plane with KubeVirt: what is stored and what pods carry, beside what we mean to build.

differences.py   what differs between a document of ours and what KubeVirt made of it. Pure
case.py          one made-up Wukong through `wukong run --components vm`, virt-api and virt-controller
machinery.py     that component beside a control plane
__main__.py      `make compare-vm`: many seeds, a table; tests/live/test_vm_comparison.py has a sample
"""
