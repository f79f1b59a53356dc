"""The scenario file: its fields, and how it is read."""
