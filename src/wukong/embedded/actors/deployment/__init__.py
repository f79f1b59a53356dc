"""The Deployment controller: sync.py is one sync of a Deployment."""
