"""The Deployment controller: sync.py is one look at a Deployment."""
