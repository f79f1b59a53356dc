"""The annotation of pods that a policy changed, by name only: what is in it is read by pods/mark.py.

Apart from there so that whoever reads objects need not bring along everything that placement computes with.
"""

from __future__ import annotations

from wukong.api.placement import GROUP

MARK = f"{GROUP}/applied"
