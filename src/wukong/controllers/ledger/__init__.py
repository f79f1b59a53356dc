"""The controller of the component ledger: numbers of replicas are recorded once they are truly available."""
