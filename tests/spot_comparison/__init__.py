"""Spot nodes reclaimed on a real control plane, with Wukong, with a plain drain, or with nobody who cares.

`make compare-spot` prints the table of docs/spot.md; tests/live/test_spot_moves.py plays two of its columns.
"""
