"""How a scenario is played on a cluster."""
