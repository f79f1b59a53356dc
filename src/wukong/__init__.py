"""Wukong: places pods and virtual machines on Kubernetes, and says what a change will do before it is applied.

The package is a stack of rows (docs/architecture.md); this module belongs to none and imports nothing, so that
importing one row never drags in another.
"""

__version__ = "0.1.0"
