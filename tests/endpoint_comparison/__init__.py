"""EndpointSlices of kube-controller-manager beside those that we keep, through rollouts and evictions."""
