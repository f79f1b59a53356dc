"""What the spot mover costs: `departures` plans for the pods of many nodes, and a look at a node that got notice."""
