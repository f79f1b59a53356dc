"""What is recorded of a scenario while it is played, and the story that comes of it."""
