"""A snapshot of another cluster made fit to be played on."""
