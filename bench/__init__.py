"""Benchmarks: ratios and growth curves that print figures, never a timed assertion. Run them with `make bench`."""
