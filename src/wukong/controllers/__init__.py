"""Controllers: pure functions of what the cluster looks like and what time it is. Row 3."""
