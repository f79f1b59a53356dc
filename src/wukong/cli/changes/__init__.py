"""What `wukong patch`, `separate`, `undo` and `follow` have in common: a session with a cluster, and the course."""
