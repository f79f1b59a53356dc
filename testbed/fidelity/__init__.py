"""Fidelity: the same scenario embedded and on a real control plane, and what differs. `python -m testbed fidelity`.

The one part of the test bed that knows Wukong: what it compares is Wukong's embedded cluster with the real thing.
"""
