"""What verbs show: tables, documents, live views."""
