"""The embedded cluster in motion: world.py runs processes on virtual time."""
