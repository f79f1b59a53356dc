"""Stores of the ledger of replicas: SQLite, one file."""
