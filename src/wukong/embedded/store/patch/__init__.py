"""Patches of the four types."""
