"""The DaemonSet controller: sync.py is one sync of a DaemonSet."""
