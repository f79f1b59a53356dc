"""Karpenter's provisioning: which nodes of which NodePools come for pods that wait."""
