"""The controllers of the component spot: pods move away from nodes that are about to go, replacements first."""
