"""HorizontalPodAutoscalers of kube-controller-manager beside those that we play, by seed: `make compare-autoscaler`."""
