"""The garbage collector, the namespace controller and the pod garbage collector."""
