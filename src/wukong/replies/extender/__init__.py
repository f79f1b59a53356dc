"""The scheduler extender: verbs.py answers filter, prioritize and preempt; the modules beside it help. Row 3, pure."""
