"""KubeVirt 1.7: virt-controller's controllers, and the virt-handlers of all nodes with hollow guests."""
