"""The disruption controller: PodDisruptionBudgets."""
