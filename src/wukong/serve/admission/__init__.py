"""Admission webhooks over HTTP: decode, call, encode."""
