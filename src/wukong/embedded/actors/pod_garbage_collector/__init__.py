"""The pod garbage collector: pods whose node is gone."""
