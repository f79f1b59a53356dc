"""The Job controller: sync.py is one sync of a Job."""
