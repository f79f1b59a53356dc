"""The node lifecycle controller and taint eviction."""
