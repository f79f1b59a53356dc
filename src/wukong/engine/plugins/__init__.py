"""The scheduling plugins, one file each; registry.py lists them."""
