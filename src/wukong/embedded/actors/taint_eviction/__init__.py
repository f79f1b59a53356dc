"""Taint eviction: pods leave nodes with a NoExecute taint."""
