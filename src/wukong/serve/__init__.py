"""HTTP shells: they decode, call and encode. Row 5; everything they say is decided below."""
