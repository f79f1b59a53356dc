"""What the API server does to a pod before the scheduler sees it, and what it refuses, as far as placement goes.

Pure functions of a pod and the objects around it. Called by the embedded API server and by whoever reads manifests.
"""

from wukong.admission.mutation import admit
from wukong.admission.pod_validation import find_pod_problems

__all__ = ["admit", "find_pod_problems"]
