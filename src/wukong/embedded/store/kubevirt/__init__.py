"""What KubeVirt's webhooks do in front of the store: defaults, refusals, and evictions that become migrations."""
