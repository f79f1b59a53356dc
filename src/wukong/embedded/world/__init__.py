"""The embedded cluster at work: world.py plays processes on virtual time."""
