"""The cluster autoscaler: asks for nodes when pods wait, and removes nodes that nobody needs."""
