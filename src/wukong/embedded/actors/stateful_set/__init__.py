"""The StatefulSet controller: sync.py is one sync of a StatefulSet."""
