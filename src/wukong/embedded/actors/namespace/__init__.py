"""The namespace controller."""
