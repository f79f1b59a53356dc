"""What the API server refuses to store."""
