"""How long the controllers of a real control plane take: measured here, drawn by the embedded cluster."""
