"""Workloads as documents: rules of ours in their templates, and the patches that write them. Row 2, pure.

rules          a rule that keeps pods apart, as a term of podAntiAffinity
template_rules rules of ours in a template: recognised, put, replaced, removed; all others stay to the letter
edits          what is asked of a workload → the document that it shall be
progress       how far a rollout is, and what its pods wait for
revisions      the versions that a workload can go back to
canaries       a rollout that is tried on a few pods first
patch_forms    the change between two documents as a JSON, merge or strategic merge patch, or as an apply
"""
