"""What a change to a large cluster costs: `make bench ARGS=--forecast`."""
