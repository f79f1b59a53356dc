"""What Kubernetes asks us, answered from the question, the state and the time. Row 3; serve/ does the HTTP."""
