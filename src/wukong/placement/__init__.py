"""Placement: what a node is to us (spot, leaving, priced, used) and what a policy wants of it. Row 2, pure.

capacity, leaving, prices      what is known of one node
pod_annotations                names of annotations that others look for
fleet                          all nodes as columns
rule, rules/                   the rules a policy may name: the contract, and those that are built in
limits, affinity_problems, policy_problems, compile, matching
                               a policy → a Plan, or what is wrong with it; a pod → its plan
judge                          a Plan on a Fleet: which nodes are refused and why, and the points of the others
free_labels, node_terms        what nodes have free, as labels; node-affinity terms that compare them
pods/, vm/                     a policy → what pods get at admission; a Wukong → its virtual machines
workloads/                     rules in templates of workloads, the patches that write them, how far a rollout is
slices                         how all of that is done a few milliseconds at a time
"""
