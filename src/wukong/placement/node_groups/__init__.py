"""Node groups as users have them: a file of their own, cluster-autoscaler's status, or Karpenter's NodePools."""
