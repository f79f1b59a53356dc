"""The rollout controller: the ReplicaSets and Services of each Rollout, version by version."""
