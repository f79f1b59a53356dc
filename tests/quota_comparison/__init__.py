"""Quotas, limit ranges and pod security on a real API server beside the embedded one, by seed: `make compare-quota`."""
