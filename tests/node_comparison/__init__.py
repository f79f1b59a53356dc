"""How many nodes come for pods that wait: a real autoscaler's and ours, on the same random cases."""
