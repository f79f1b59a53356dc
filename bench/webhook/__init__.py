"""The webhook for pods over HTTP beside one in Go: `python -m bench --webhook`."""
