"""Our scheduler beside the real kube-scheduler: `python -m bench --scheduler`."""
