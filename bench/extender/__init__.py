"""The scheduler extender over HTTP beside others: `python -m bench --extender`."""
